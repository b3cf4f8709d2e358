#pragma once
/// The trainer of a simulation: curves instead of training, simulated time instead of work.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "engine/config.hpp"
#include "engine/simulate/curves.hpp"
#include "engine/simulate/simulated_time.hpp"
#include "engine/trainer.hpp"

namespace hfta::engine {

struct SimulatedDevice {
  std::string name;
  std::function<double()> speed;  ///< Its speed now. It only shows in the time of epochs.
  double fixed = 0.5;             ///< See SimulationOptions; not read if `threads` > 0.
  int threads = 0;                ///< Number of CPU threads; 0: the device is no CPU.
};

/// How many times as fast `threads` of a CPU train that many slots as one thread trains them one after another: a slot
/// each, as often as there are that many slots; teams share the rest, and each thread of a team beside the first adds
/// kTeamThread of its own speed (measured on two threads: docs/devices.md, "Late rungs"). REQUIRES both >= 1.
[[nodiscard]] double speed_of_threads(int threads, int slots);
inline constexpr double kTeamThread = 0.7;

/// One device of a simulation. An epoch of 32 slots takes a second times what its partition costs (0.5 to 2, decided by
/// its name) and a jitter of a tenth, divided by the device's speed; on a CPU, on one thread. An array on a CPU that
/// borrows threads trains as if they were its own until its epoch ends, even where the lender begins earlier: an epoch
/// is not interrupted. States are a few bytes that have to be carried on for a curve to go on.
class SimulatedTrainer final : public Trainer {
 public:
  /// All must outlive it.
  SimulatedTrainer(const StudyConfig& config, const Curves& curves, SimulatedTime& time, SimulatedDevice device);

  void check(const trials::Params& /*params*/) override {}
  [[nodiscard]] DeviceFacts device_facts() const override {
    if (device_.threads > 0) return {device_.name, 0, 1.0 * device_.threads, device_.threads, device_.threads};
    return {device_.name, 0, 1, device_.fixed > 0 ? std::nullopt : std::optional(1)};
  }
  [[nodiscard]] PartitionPlan plan(const trials::Params& params) override;
  [[nodiscard]] std::vector<MeasuredWay> measure(const trials::Params&, const Pause&) override { return {}; }
  [[nodiscard]] std::vector<ModelFacts> models() const override { return {}; }
  [[nodiscard]] std::vector<DataFacts> data() const override { return {}; }
  [[nodiscard]] std::string recall(const std::string& /*partition*/, const std::string& /*choices_json*/) override {
    return "";
  }
  [[nodiscard]] std::optional<double> step_seconds(const std::string& partition, int slots) const override;
  [[nodiscard]] std::unique_ptr<TrainerArray> open(const trials::Params& params, int width, double expected_epochs,
                                                   const Pause& pause) override;

 private:
  const StudyConfig& config_;
  const Curves& curves_;
  SimulatedTime& time_;
  SimulatedDevice device_;
  std::set<std::string> opened_;  ///< Partitions of arrays that were opened.
};

}  // namespace hfta::engine
