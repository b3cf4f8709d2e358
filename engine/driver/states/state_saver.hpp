#pragma once
/// Writes training states to disk while the study runs: as often as their cost allows, and those for which memory does
/// not suffice.

#include <cstddef>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "engine/driver/arrays/device_arrays.hpp"
#include "engine/driver/states/checkpoint_manager.hpp"
#include "engine/driver/trials/trial_table.hpp"
#include "engine/driver/writing/study_writer.hpp"

namespace hfta::engine {

/// Adds states to a batch, which the caller has written. Devices are identified by their index. Used by one thread.
class StateSaver {
 public:
  /// All must outlive this. `memory`: bytes of states that trials may hold in memory.
  StateSaver(TrialTable& table, CheckpointManager& checkpoints, const StudyWriter& writer,
             const DeviceArrays::Arrays& arrays, const Clock& clock, std::size_t memory, WriteBatch& batch);

  /// Least seconds between two saves of a device's states.
  [[nodiscard]] double interval() const;
  /// Saves the device's states and those of trials that wait, if it is time. The first round of a run is saved at once:
  /// a study that is killed again and again gets on. REQUIRES that the device is not at work.
  void save_if_due(std::size_t device);
  /// Saves states of trials that wait, and of those in the slots of these devices, which must not be at work.
  void save(const std::vector<std::size_t>& those);
  /// Moves the states that wait longest to disk, until memory suffices: the latest draws come last in every queue.
  void spill();

 private:
  TrialTable& table_;
  CheckpointManager& checkpoints_;
  const StudyWriter& writer_;
  const DeviceArrays::Arrays& arrays_;
  const Clock& clock_;
  std::size_t memory_;
  WriteBatch& batch_;
  std::vector<std::optional<double>> saved_;  ///< Time at which a device's states were written last in this run.
  double take_seconds_ = 0;                   ///< Seconds that taking the states out of arrays last took.
};

}  // namespace hfta::engine
