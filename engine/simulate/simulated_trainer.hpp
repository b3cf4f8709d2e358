#pragma once
/// The trainer of a simulation: curves instead of training, simulated time instead of work.

#include <map>
#include <memory>
#include <string>

#include "engine/config.hpp"
#include "engine/simulate/curves.hpp"
#include "engine/simulate/simulated_time.hpp"
#include "engine/trainer.hpp"

namespace hfta::engine {

/// One device of a simulation. An epoch of 32 slots takes a second times what its partition costs (0.5 to 2, decided by
/// its name) and a jitter of a tenth; half of that is there however few slots there are. States are a few bytes that
/// have to be carried on for a curve to go on.
class SimulatedTrainer final : public Trainer {
 public:
  /// All must outlive it.
  SimulatedTrainer(const StudyConfig& config, const Curves& curves, SimulatedTime& time, std::string device);

  void check(const trials::Params& /*params*/) override {}
  [[nodiscard]] DeviceFacts device_facts() const override { return {device_, 0, 1}; }
  [[nodiscard]] PartitionPlan plan(const trials::Params& params) override;
  [[nodiscard]] std::vector<MeasuredWay> measure(const trials::Params&, const Pause&) override { return {}; }
  [[nodiscard]] std::vector<ModelFacts> models() const override { return {}; }
  [[nodiscard]] std::string recall(const std::string& /*partition*/, const std::string& /*choices_json*/) override {
    return "";
  }
  [[nodiscard]] std::unique_ptr<TrainerArray> open(const trials::Params& params, int width, double expected_epochs,
                                                   const Pause& pause) override;

 private:
  const StudyConfig& config_;
  const Curves& curves_;
  SimulatedTime& time_;
  std::string device_;
};

}  // namespace hfta::engine
