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
  std::function<double()> speed;  ///< Now. Nobody is told: it shows in the time of epochs.
  double fixed = 0.5;             ///< See SimulationOptions.
};

/// One device of a simulation. An epoch of 32 slots takes a second times what its partition costs (0.5 to 2, decided by
/// its name) and a jitter of a tenth, divided by the device's speed. States are a few bytes that have to be carried on
/// for a curve to go on.
class SimulatedTrainer final : public Trainer {
 public:
  /// All must outlive it.
  SimulatedTrainer(const StudyConfig& config, const Curves& curves, SimulatedTime& time, SimulatedDevice device);

  void check(const trials::Params& /*params*/) override {}
  [[nodiscard]] DeviceFacts device_facts() const override {
    return {device_.name, 0, 1, device_.fixed > 0 ? std::nullopt : std::optional(1)};
  }
  [[nodiscard]] PartitionPlan plan(const trials::Params& params) override;
  [[nodiscard]] std::vector<MeasuredWay> measure(const trials::Params&, const Pause&) override { return {}; }
  [[nodiscard]] std::vector<ModelFacts> models() const override { return {}; }
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
  std::set<std::string> opened_;  ///< Partitions.
};

}  // namespace hfta::engine
