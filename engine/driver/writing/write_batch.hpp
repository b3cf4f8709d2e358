#pragma once
/// What a run has to write, collected in memory.

#include <memory>
#include <utility>
#include <vector>

#include "engine/events/event.hpp"
#include "engine/trainer.hpp"
#include "storage/checkpoints.hpp"
#include "storage/store.hpp"

namespace hfta::engine {

/// A training state that the run's memory and a file on its way to disk share.
using HeldState = std::shared_ptr<const SlotState>;

/// The changes of one moment of the run. They are written in the order of these members. A crash in between may leave
/// an unneeded file, or a state that is behind the store, but never a COMPLETE trial without its weights, a copy
/// without the copied state, or a state ahead of the store.
struct WriteBatch {
  struct File {
    storage::StateKind kind = storage::StateKind::kRunning;
    int number = 0, epoch = 0;
    HeldState state;
  };
  std::vector<File> kept;  ///< Files that the transaction refers to: weights of COMPLETE trials, states of copies.
  storage::Changes changes;
  /// Trials that continue from a copy, and after which epoch: their earlier running and finished files are removed
  /// before `states` are written.
  std::vector<std::pair<int, int>> outdated;
  std::vector<File> states;  ///< States of trials that continue: for each the finished one, then the running one.
  std::vector<std::pair<storage::StateKind, int>> needless;  ///< Trials without files of a kind from now on.
  /// The trial goes on from a copy after that epoch: what was to be written of it, or removed in favour of it, is void.
  void outdate(int number, int epoch);
  std::vector<Event> events;  ///< Sent when the transaction is durable.

  /// Adds what happened later. Of each kind of a trial's `states` only the latest is left, and none of a trial whose
  /// running state is needless.
  void append(WriteBatch later);
  [[nodiscard]] bool empty() const;
};

}  // namespace hfta::engine
