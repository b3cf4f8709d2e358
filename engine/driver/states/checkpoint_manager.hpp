#pragma once
/// Decides which training states are on disk: those that a stopped run resumes from, and the weights of the best
/// finished trials; see storage::StateKind.

#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "engine/driver/goals/kept_weights.hpp"
#include "engine/driver/trials/trial_table.hpp"
#include "engine/driver/writing/write_batch.hpp"
#include "engine/trainer.hpp"
#include "storage/checkpoints.hpp"
#include "trials/trial.hpp"

namespace hfta::engine {

/// Running states belong to trials that are not done. Finished states are those that a trial's value was measured on:
/// of trials that KeptWeights names and, with metric.select best, of trials that still run. A copied state is the one
/// that its trial continues from until the trial has a running state of its own: while a copied state exists, running
/// states are from before the copy. Files to write and to remove are added to write batches; only begin(), restore()
/// and finished_state() access the disk.
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
  /// A trial has ended: removes the weights that are no longer kept, but for its own, which are not on disk.
  void end(int draw, int number, trials::State state, const std::vector<double>& values, WriteBatch& batch);
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
  KeptWeights kept_;
  std::set<int> on_disk_;       ///< Numbers with files under `running`, or on their way there.
  std::set<int> best_on_disk_;  ///< Unfinished trials with files under `finished`, or queued to be written there.
  std::set<int> copied_;        ///< Trials with files under `copied`, or queued to be written there.
};

}  // namespace hfta::engine
