#pragma once
/// Writes what a run brings, in the order in which it happened, beside training.

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

/// What a moment of the run brings, written in this order: a crash in between leaves a file too many, or a state that
/// is behind the store, never a COMPLETE trial without its weights, a copy without what it is of, or a state ahead of
/// the store.
struct WriteBatch {
  struct File {
    storage::StateKind kind = storage::StateKind::kRunning;
    int number = 0, epoch = 0;
    HeldState state;
  };
  std::vector<File> kept;  ///< What this transaction says is there: weights of COMPLETE trials, states of copies.
  storage::Changes changes;
  /// Trials that go on from a copy, and after which epoch: without earlier running and finished files, before `states`.
  std::vector<std::pair<int, int>> outdated;
  std::vector<File> states;                                  ///< Of trials that go on.
  std::vector<std::pair<storage::StateKind, int>> needless;  ///< Trials without files of a kind from now on.
  std::vector<Event> events;                                 ///< Told when the transaction is durable.
};

/// One thread that writes pages. Pages that wait become one, so that a busy store, or a slow disk, costs training
/// nothing: rows queue. While another program locks the store, however it does that, the recorder says so and tries on.
/// Called by one thread; the store, the checkpoints' writing and the sink are its own until it is flushed.
class StudyWriter {
 public:
  struct Places {
    storage::Store& store;
    storage::StudyStates& states;
    EventSink& events;
    const Clock& clock;
    const Faults& faults;
    const std::atomic<int>&
        stop;            ///< Not 0: the run is to stop, and waits ten seconds more for a store that is locked.
    bool beside = true;  ///< False: add() writes at once, in the caller's thread.
  };
  StudyWriter(const Places& places, std::string study);
  /// Writes what is left if that can be done.
  ~StudyWriter();
  StudyWriter(const StudyWriter&) = delete;
  StudyWriter& operator=(const StudyWriter&) = delete;

  /// Throws what went wrong with an earlier page, after which no page is written any more.
  void add(WriteBatch page);
  /// Returns when everything added is durable. Throws as add(), and Error{kLocked} when a stop was asked for and the
  /// store stays locked.
  void flush();
  /// The same, but false, with things left to write, where another program locks the store.
  [[nodiscard]] bool try_flush();
  // The next three go to the store at once, and say nullopt if another program locks it: the first two after a quarter
  // of a second. They throw as the store does and as add().
  /// Store::add_trials.
  [[nodiscard]] std::optional<std::vector<int>> add_trials(const std::vector<storage::NewTrial>& trials,
                                                           trials::UtcTime when);
  /// Store::claim.
  [[nodiscard]] std::optional<bool> claim(int number, const trials::Params& params, trials::UtcTime when,
                                          const std::string& failure);
  /// Store::enqueued where another program has written to the store since the last look; nullopt also where none has,
  /// or where the store is at work.
  [[nodiscard]] std::optional<std::vector<storage::EnqueuedTrial>> enqueued();

  /// Throws Error{kBusy} if the study was taken over from this run; where that cannot be asked, nothing. From any
  /// thread.
  void check_held();

  /// A page could not be written; add() says why. From any thread.
  [[nodiscard]] bool failed() const;
  /// States are on their way to disk.
  [[nodiscard]] bool saving() const;
  /// Seconds that writing the last page's states took.
  [[nodiscard]] double saving_seconds() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hfta::engine
