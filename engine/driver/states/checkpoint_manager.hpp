#pragma once
/// Decides which training states are on disk: those that a stopped run resumes from, and the weights of the best
/// finished trials; see storage::StateKind.

#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "engine/driver/goals/best_repetitions.hpp"
#include "engine/driver/trials/trial_table.hpp"
#include "engine/driver/writing/write_batch.hpp"
#include "engine/trainer.hpp"
#include "storage/checkpoints.hpp"
#include "trials/pareto.hpp"
#include "trials/trial.hpp"

namespace hfta::engine {

/// The best of the COMPLETE trials added, ties to the lower number: the trials whose weights are kept. With
/// several objectives: the Pareto front.
class BestTrials {
 public:
  /// Keeps at most `keep` trials, and at least one, which is tested when the study ends; of several objectives the
  /// whole front, which is tested then, however large.
  BestTrials(int keep, trials::Objectives objectives);
  /// `values`: one per objective; of several objectives a trial without a point (trials/pareto.hpp) is never among the
  /// best. Returns the numbers of the trials that are no longer among the best, which may be this one.
  std::vector<int> add(int number, const std::vector<double>& values);
  [[nodiscard]] bool contains(int number) const;
  /// The trials' numbers, best first; with several objectives ascending.
  [[nodiscard]] std::vector<int> numbers() const;

 private:
  struct Kept {
    double value;
    int number;
  };
  std::vector<int> add_to_best(int number, double value);

  std::size_t most_;
  trials::Objectives objectives_;
  std::vector<Kept> best_;     ///< For one objective: the best trials, best first, at most `most_`.
  trials::ParetoFront front_;  ///< For several objectives: the Pareto front.
};

/// Running states belong to trials that are not done. Finished states are those that a trial's value was measured on:
/// of the best `keep` COMPLETE trials, of those that BestRepetitions names and, with metric.select best, of trials that
/// still run. A copied state is the one that its trial continues from until the trial has a running state of its own:
/// while a copied state exists, running states are from before the copy. Files to write and to remove are added to
/// write batches; only begin(), restore() and finished_state() access the disk.
class CheckpointManager {
 public:
  /// `settle`: returns when everything that was passed to the StudyWriter is on disk.
  CheckpointManager(storage::StudyStates& states, const StudyConfig& config, std::function<void()> settle);

  /// Reads which files are on disk and removes those that no trial of the table needs.
  void begin(TrialTable& table);

  /// Adds the state of a trial after `entry.trained` epochs to the batch, if it has changed since it was last written.
  void save(TrialRecord& entry, int number, const HeldState& state, WriteBatch& batch);
  /// Restores a trial that is in no slot from memory or disk: its newest state, and `trained`, the epochs that the
  /// state has had; null and 0 if the trial has to start anew.
  [[nodiscard]] HeldState restore(TrialRecord& entry, int number);

  /// The state that restore() gave does not fit the trial's model: the next restore() gives the state before it.
  /// Returns the state's file, which has been removed; nullopt if the state was not from disk.
  [[nodiscard]] std::optional<std::filesystem::path> discard(TrialRecord& entry, int number);

  /// A trial continues from `state`, a copy of another trial's state after as many epochs; null: the state has to be
  /// trained again, from the start. The trial's earlier states are removed when the batch is written.
  void copy(const TrialRecord& entry, int number, const HeldState& state, WriteBatch& batch);
  /// A trial is COMPLETE: keeps `state` on disk if it is among the best.
  void keep(int draw, int number, const std::vector<double>& values, int epoch, const HeldState& state,
            WriteBatch& batch);
  /// A trial is done, and not COMPLETE.
  void give_up(int draw, int number, trials::State state, WriteBatch& batch);
  /// A trial is done (after keep(), if it is COMPLETE).
  void forget(int number, WriteBatch& batch);

  /// The weights that a finished trial's value was measured on; nullopt if they are not kept.
  [[nodiscard]] std::optional<SlotState> finished_state(int number);

 private:
  [[nodiscard]] storage::Checkpoints& of(storage::StateKind kind) { return states_.of(kind); }
  /// Whether the finished state of that COMPLETE trial is kept.
  [[nodiscard]] bool is_kept(int number) const { return best_.contains(number) || repetitions_.contains(number); }
  void remove_released(int but, WriteBatch& batch);
  /// The kind of state that an unfinished trial continues from; nullopt if it has nothing on disk.
  [[nodiscard]] std::optional<storage::StateKind> kind_on_disk(int number) const;
  [[nodiscard]] std::optional<storage::Checkpoint> newest(const TrialRecord& entry, int number);
  [[nodiscard]] bool has_best(TrialRecord& entry, int number, int epoch);
  /// The newest state of at most that many epochs; later states, written by a run that was killed before its
  /// transaction, are removed.
  [[nodiscard]] std::optional<storage::Checkpoint> load_up_to(storage::StateKind kind, int number, int epoch);

  storage::StudyStates& states_;
  std::function<void()> settle_;
  bool select_best_;
  BestTrials best_;
  BestRepetitions repetitions_;
  std::set<int> on_disk_;       ///< Numbers with files under `running`, or on their way there.
  std::set<int> best_on_disk_;  ///< Unfinished trials with files under `finished`, or queued to be written there.
  std::set<int> copied_;        ///< Trials with files under `copied`, or queued to be written there.
};

}  // namespace hfta::engine
