#pragma once
/// Writes the results of a run in the order in which they happened, while training continues.

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/faults.hpp"
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
};

/// One thread that writes batches. Waiting batches are merged into one, so that a busy store or a slow disk does not
/// slow training down: rows queue. While another program locks the store, by whatever kind of lock, the writer reports
/// it and retries. Called by one thread; only the writer uses the store, the sink, and the checkpoints for writing
/// until it is flushed.
class StudyWriter {
 public:
  struct Places {
    storage::Store& store;
    storage::StudyStates& states;
    EventSink& events;
    const Clock& clock;
    const Faults& faults;
    const std::atomic<int>&
        stop;            ///< Not 0: the run is to stop, and waits at most ten more seconds for a locked store.
    bool beside = true;  ///< False: add() writes at once, in the caller's thread.
  };
  StudyWriter(const Places& places, std::string study);
  /// Writes the remaining batches if possible.
  ~StudyWriter();
  StudyWriter(const StudyWriter&) = delete;
  StudyWriter& operator=(const StudyWriter&) = delete;

  /// Throws the error of an earlier batch, after which no batch is written any more.
  void add(WriteBatch batch);
  /// Returns when everything added is durable. Throws as add(), and Error{kLocked} when a stop was asked for and the
  /// store stays locked.
  void flush();
  /// Flushes, but returns false, with batches left to write, if another program locks the store.
  [[nodiscard]] bool try_flush();
  // The next three call the store at once, and return nullopt if another program locks it, the first two of them after
  // a quarter of a second. They throw as the store does and as add().
  /// Store::add_trials.
  [[nodiscard]] std::optional<std::vector<int>> add_trials(const std::vector<storage::NewTrial>& trials,
                                                           trials::UtcTime when);
  /// Store::claim.
  [[nodiscard]] std::optional<bool> claim(int number, const trials::Params& params, trials::UtcTime when,
                                          const std::string& failure);
  /// Store::enqueued if another program has written to the store since the last call; nullopt also if none has, or if
  /// the store is busy writing.
  [[nodiscard]] std::optional<std::vector<storage::EnqueuedTrial>> enqueued();

  /// Throws Error{kBusy} if another process has taken the study from this run; does nothing if the store cannot be
  /// read. From any thread.
  void check_held();

  /// Whether a batch could not be written; add() throws the reason. From any thread.
  [[nodiscard]] bool failed() const;
  /// Whether states are being written to disk or wait for it.
  [[nodiscard]] bool saving() const;
  /// Seconds that writing the last batch's states took.
  [[nodiscard]] double saving_seconds() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hfta::engine
