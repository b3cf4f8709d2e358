#pragma once
/// Which training states lie on disk: those that a stopped run goes on from, and the weights of the best finished
/// trials; see storage::StateKind.

#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "engine/driver/study_writer.hpp"
#include "engine/driver/trial_table.hpp"
#include "engine/trainer.hpp"
#include "storage/checkpoints.hpp"
#include "trials/trial.hpp"

namespace hfta::engine {

/// The best of the COMPLETE trials that it is told of, ties to the lower number: whose weights are kept.
class BestTrials {
 public:
  /// At most `keep` of them; one at least, which is tested when the study ends.
  BestTrials(int keep, trials::Goal goal);
  /// The number of the trial that is not among them any more, which may be this one; nullopt if all have room.
  std::optional<int> add(int number, double value);
  [[nodiscard]] bool contains(int number) const;
  /// Best first.
  [[nodiscard]] std::vector<int> numbers() const;

 private:
  struct Kept {
    double value;
    int number;
  };
  std::size_t most_;
  trials::Goal goal_;
  std::vector<Kept> best_;  ///< Best first, at most `most_`.
};

/// Running states belong to trials that are not done; finished ones are what a trial's value was measured on: of the
/// best `keep` COMPLETE trials and, with metric.select best, of trials that still run. A copied one is what its trial
/// goes on from until that has a running one: while it is there, running ones are of what the trial was before.
/// What is to be written and removed goes into pages; only begin(), restore() and finished_state() touch the disk.
class CheckpointManager {
 public:
  /// `settle`: brings everything that was handed to the recorder to disk.
  CheckpointManager(storage::StudyStates& states, const StudyConfig& config, std::function<void()> settle);

  /// Learns what lies on disk and removes what no trial of the ledger needs.
  void begin(TrialTable& ledger);

  /// Has the state of a trial after `entry.trained` epochs written, if it has changed since that was last done.
  void save(TrialRecord& entry, int number, const HeldState& state, WriteBatch& page);
  /// Brings a trial that is in no slot as far as memory and disk allow: its state, and `trained`, which says how far it
  /// goes; null, and 0, if the trial has to start anew.
  [[nodiscard]] HeldState restore(TrialRecord& entry, int number);

  /// What restore() gave does not fit the trial's model: the next one gives the state before it. Returns the file,
  /// which is gone; nullopt if the state was not from disk.
  [[nodiscard]] std::optional<std::filesystem::path> discard(TrialRecord& entry, int number);

  /// A trial goes on from `state`, a copy of another's after as many epochs; null: it has to be made again, from the
  /// start. What the trial was before is gone with the page.
  void copy(const TrialRecord& entry, int number, const HeldState& state, WriteBatch& page);
  /// A trial is COMPLETE: keeps `state` on disk if it is among the best.
  void keep(int number, double value, int epoch, const HeldState& state, WriteBatch& page);
  /// A trial is done (after keep(), if it is COMPLETE).
  void forget(int number, WriteBatch& page);

  /// The weights that a finished trial's value was measured on; nullopt if they are not kept.
  [[nodiscard]] std::optional<SlotState> finished_state(int number);

 private:
  [[nodiscard]] storage::Checkpoints& of(storage::StateKind kind) { return states_.of(kind); }
  [[nodiscard]] std::optional<storage::Checkpoint> newest(const TrialRecord& entry, int number);
  /// The newest one of at most so many epochs; later ones, written by a run that was killed in front of its
  /// transaction, are removed.
  [[nodiscard]] std::optional<storage::Checkpoint> load_up_to(storage::StateKind kind, int number, int epoch);

  storage::StudyStates& states_;
  std::function<void()> settle_;
  bool select_best_;
  BestTrials best_;
  std::set<int> on_disk_;       ///< Numbers with files under `running`, or on their way there.
  std::set<int> best_on_disk_;  ///< Unfinished trials with files under `finished`, or queued to be written there.
  std::set<int> copied_;        ///< The same under `copied`.
};

}  // namespace hfta::engine
