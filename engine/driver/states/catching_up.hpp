#pragma once
/// A resumed study of a method that learns: trials whose states are behind the store are trained, alone, up to it.
///
/// A draw sees the epochs that every trial had when a slot became empty. After a kill, the states of trials may be
/// behind the store, each by another number of epochs. If all trials simply resumed side by side, later draws would see
/// more epochs of one trial and fewer of another than in an undisturbed run. So the trials that are behind are first
/// trained, alone, up to the epochs that the store has of them. The store has these rounds already, so they are neither
/// counted nor recorded. Afterwards every trial is where the last round left it.

#include <map>

#include "engine/driver/arrays/open_array.hpp"
#include "engine/driver/states/checkpoint_manager.hpp"
#include "engine/driver/states/state_saver.hpp"
#include "engine/driver/trials/queue.hpp"
#include "engine/driver/trials/trial_table.hpp"
#include "search/scheduler.hpp"

namespace hfta::engine {

/// Trials are identified by their draw. Used by one thread.
class CatchingUp {
 public:
  /// All must outlive this.
  CatchingUp(TrialTable& table, CheckpointManager& checkpoints, ReadyQueue& queue, StateSaver& saver)
      : table_(table), checkpoints_(checkpoints), queue_(queue), saver_(saver) {}

  /// Starts catching up: the trials that are behind go to the queue. False: no trial is behind.
  bool begin();
  /// Whether only trials that are behind train, and what they do is in the store already.
  [[nodiscard]] bool active() const { return is_active_; }
  /// Whether no trial is behind any more.
  [[nodiscard]] bool done() const { return laggards_.empty(); }
  void end() { is_active_ = false; }

  /// Takes a trial that has caught up out of its slot; false: the trial is none that had to.
  bool take_out(OpenArray& array, int slot);
  /// The trial has ended.
  void forget(int draw) { laggards_.erase(draw); }

 private:
  /// The phase and decision that the store has of a trial whose state is behind it, for when it has caught up.
  struct Laggard {
    Phase phase = Phase::kReady;
    search::Decision decision = search::Decision::kContinue;
  };

  TrialTable& table_;
  CheckpointManager& checkpoints_;
  ReadyQueue& queue_;
  StateSaver& saver_;
  bool is_active_ = false;
  std::map<int, Laggard> laggards_;  ///< Trials whose state is behind the store, by draw.
};

}  // namespace hfta::engine
