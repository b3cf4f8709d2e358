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
#include "engine/driver/writing/write_batch.hpp"
#include "engine/events/event.hpp"
#include "storage/checkpoints.hpp"
#include "storage/store.hpp"

namespace hfta::engine {

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
