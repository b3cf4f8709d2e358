#pragma once
/// Test metrics of the best trials of a study that has ended.

#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/config.hpp"
#include "engine/driver/states/checkpoint_manager.hpp"
#include "engine/driver/trials/trial_table.hpp"
#include "engine/driver/writing/write_batch.hpp"
#include "engine/trainer.hpp"
#include "trials/trial.hpp"

namespace hfta::engine {

/// Search never sees these numbers: they are taken once, when everything is decided, in an array of one slot so that
/// they do not depend on widths. Used by one thread.
class BestTester {
 public:
  struct Devices {
    std::vector<Trainer*> trainers;  ///< One per device, not owned.
    /// Whether the device has failed. Throws if there is none of that index.
    std::function<bool(std::size_t device)> failed;
    /// The device has failed at testing; throws if no other one is left.
    std::function<void(std::size_t device, const std::exception_ptr& error)> recover;
  };

  /// All must outlive this.
  BestTester(const StudyConfig& config, const TrialTable& table, CheckpointManager& checkpoints, Devices devices,
             WriteBatch& batch);

  /// Tests each of the best trials that has not been tested; adds metrics and events to the batch.
  void test();

 private:
  [[nodiscard]] bool test(const trials::Trial& best);
  [[nodiscard]] std::map<std::string, double> test_metrics(const trials::Trial& best, const SlotState& state);

  const StudyConfig& config_;
  const TrialTable& table_;
  CheckpointManager& checkpoints_;
  Devices devices_;
  WriteBatch& batch_;
};

}  // namespace hfta::engine
