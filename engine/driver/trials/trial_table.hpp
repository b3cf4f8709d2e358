#pragma once
/// A run's knowledge of its study's trials, in memory: one entry per draw, with the sampler and the scheduler.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/config.hpp"
#include "engine/driver/draws/draws.hpp"
#include "engine/driver/draws/strategy.hpp"
#include "engine/driver/goals/measure.hpp"
#include "engine/driver/goals/standings.hpp"
#include "engine/driver/trials/held_states.hpp"
#include "engine/driver/trials/lineage.hpp"
#include "engine/driver/writing/write_batch.hpp"
#include "engine/events/event.hpp"
#include "engine/trainer.hpp"
#include "storage/store.hpp"
#include "trials/trial.hpp"

namespace hfta::engine {

/// The phase of a trial within a run.
enum class Phase {
  kReady,     ///< May go into a slot: new, promoted, or interrupted.
  kTraining,  ///< Is in a slot.
  kPaused,    ///< Waits for a verdict.
  kDone,      ///< COMPLETE, PRUNED or FAIL.
};

/// One trial as the driver sees it.
struct TrialRecord {
  Phase phase = Phase::kReady;
  std::string partition;  ///< See TrialTable::assign.
  int recorded = 0;       ///< Epochs the store has, or gets with this round's commit.
  int trained = 0;        ///< Epochs its training state has had. Behind `recorded` while a lost state is trained again.
  int copied = 0;         ///< Trial::copies' last epoch, from where `values` count; 0: it has none.
  bool begun = false;     ///< It has been in a slot, or has ended without being in one.
  bool changed = false;   ///< Its state is newer than its newest checkpoint.
  HeldState state;  ///< Held while the trial is in no slot; null: the state is on disk, or the trial has not begun.
  std::vector<double> values;  ///< The values it would have if it ended now; empty before its first epoch.
  int value_epoch = 0;         ///< The epoch that these were measured at.
  HeldState best_state;        ///< metric.select best: the state after `value_epoch`.
  search::Decision decision = search::Decision::kContinue;  ///< The scheduler's latest decision.
  /// The decision at the last recorded epoch, carried out when its lost state has been trained again up to there.
  search::Decision due = search::Decision::kContinue;
  std::string failure;  ///< In a resumed study: why it failed, where the store has its last epoch and not its end.

  /// The first objective's of `values`; nullopt if there are none.
  [[nodiscard]] std::optional<double> value() const { return trials::first_of(values); }
};

/// The effect of a report.
struct ReportResult {
  bool recorded = false;  ///< The epoch is new to the store, not trained again after a lost state.
  double value = 0;       ///< The first objective's metric at this epoch.
  std::string failure;    ///< Why the trial has failed; empty if it has not.
};

/// The trials that we drew, by draw. Another process may be running the study. Throws Error{kStorage} if one is absent
/// from the store.
[[nodiscard]] std::vector<trials::Trial> drawn_trials(storage::Store& store, const std::string& study);

/// Trials are identified by their draw (0-based). Not thread-safe.
class TrialTable {
 public:
  /// `prior`: see prior_of(); draws need it. `slots`: see make_strategy().
  TrialTable(const StudyConfig& config, const std::vector<int>& run_caps, const search::History& prior = {},
             std::function<int()> slots = {});

  /// Restores the study as `store` has it: adds every trial that we drew with its epochs, and reports them to the
  /// scheduler in (epoch, trial) order, which restores its state. Trials that we did not draw are ignored. Another
  /// process may be running the study. Returns the copies that fell due and that the store does not have yet. REQUIRES
  /// that nothing was drawn yet.
  [[nodiscard]] std::vector<search::Verdict> restore(storage::Store& store);

  /// The number of trials in the study's order: those in the store, then those that are planned.
  [[nodiscard]] int drawn() const { return static_cast<int>(entries_.size()); }
  /// The number of these that are in the store.
  [[nodiscard]] int entered() const { return entered_; }
  /// Whether another trial may be drawn.
  [[nodiscard]] bool can_draw() const;
  /// The number of these that have been in a slot, or have ended without being in one.
  [[nodiscard]] int begun() const { return begun_; }
  /// Epochs that a trial gets on average if none fails.
  [[nodiscard]] double mean_epochs() const;
  /// See Draws::wait_for_slots().
  [[nodiscard]] bool learns() const { return draws_.wait_for_slots(); }
  /// See Draws::follow_results().
  [[nodiscard]] bool draws_learn() const { return draws_.follow_results(); }
  /// Whether some trials end before their last epoch, though they have not failed.
  [[nodiscard]] bool stops_trials() const { return strategy_.stops_trials; }
  /// Plans at most `k` further trials, which have no number yet; returns how many. A configuration's repetitions follow
  /// one another. 0: there are no more, and can_draw() is false. `rounds`: the study's rounds that are over. `like`: a
  /// draw that has a partition; a single configuration is planned, of this partition if the sampler finds one.
  int plan(int k, int rounds, std::optional<int> like = std::nullopt);
  /// The store has given these numbers to the next planned trials.
  void enter(const std::vector<int>& numbers);
  /// Drops the planned trials, so that another trial can take their place; they will be planned again.
  void forget_planned();
  /// Enters a trial that the store has; returns its draw. REQUIRES that none is planned.
  int add(int number, trials::Params params, bool enqueued = false);
  /// Whether one more configuration may be entered that the sampler did not draw.
  [[nodiscard]] bool has_room() const { return !strategy_.cap || repetitions().rounded_up(entered_) < *strategy_.cap; }
  [[nodiscard]] const trials::Repetitions& repetitions() const { return strategy_.repetitions; }
  /// How many repetitions the latest configuration lacks yet.
  [[nodiscard]] int missing_repetitions() const { return repetitions().rounded_up(drawn()) - drawn(); }
  /// See Standings::best_trials().
  [[nodiscard]] std::vector<const trials::Trial*> best_trials() const { return standings_.best_trials(trials_); }
  /// See Standings::best_value().
  [[nodiscard]] std::optional<double> best_value() const { return standings_.best_value(trials_); }

  [[nodiscard]] TrialRecord& entry(int draw) { return entries_.at(static_cast<std::size_t>(draw)); }
  [[nodiscard]] const TrialRecord& entry(int draw) const { return entries_.at(static_cast<std::size_t>(draw)); }
  [[nodiscard]] trials::Trial& trial(int draw) { return trials_.at(static_cast<std::size_t>(draw)); }
  [[nodiscard]] const trials::Trial& trial(int draw) const { return trials_.at(static_cast<std::size_t>(draw)); }
  /// The parameters that the trial is trained with from its current epoch.
  [[nodiscard]] const trials::Params& params(int draw) const { return trials::latest_params(trial(draw)); }
  /// The identity with which the trial's state is trained further; see lineage.hpp.
  [[nodiscard]] Identity identity(int draw) const { return identity_of(trials_, draw, entry(draw).trained); }
  [[nodiscard]] int recorded(int draw) const { return entry(draw).recorded; }
  /// The trials. Their epochs have only the metrics that are objectives: the store has the others.
  [[nodiscard]] const std::vector<trials::Trial>& trials() const { return trials_; }
  [[nodiscard]] const search::Scheduler& scheduler() const { return *strategy_.scheduler; }
  /// The number of trials that there will be in all; unset: no limit.
  [[nodiscard]] std::optional<int> cap() const { return strategy_.trials(enqueued_); }

  /// Enters an epoch that a slot trained, and asks the scheduler, whose answer becomes the entry's decision. Epochs
  /// that are already recorded are not reported again; a trial that diverges in one of them has failed.
  [[nodiscard]] ReportResult report(int draw, const SlotReport& report);
  /// Verdicts that have fallen due; each is already set as the entry's decision.
  [[nodiscard]] std::vector<search::Verdict> take_verdicts();
  /// The trial continues from a copy of another, after its last epoch; it has no value until its next report.
  void copy(int draw, const search::CopyOf& copy);
  /// Ends a trial. `round`: the current round, or the next one; unset: every draw after this trial has seen its end.
  void finish(int draw, trials::State state, const std::string& reason, std::optional<int> round);
  /// Says which arrays the trial fits in.
  void assign(int draw, std::string partition);
  /// Moves a trial that is not done to another phase. If it is in no slot, it holds `state`.
  void rest(int draw, Phase phase, HeldState state);
  void seat(int draw);
  /// The states that trials hold while they are in no slot.
  [[nodiscard]] const HeldStates& held() const { return held_; }
  /// See HeldStates::take_unsaved().
  [[nodiscard]] std::set<int> take_unsaved() { return held_.take_unsaved(); }
  /// Releases the state, which is on disk too.
  void release(int draw);
  /// The first trial of a partition. REQUIRES that there is one.
  [[nodiscard]] int example_of(const std::string& partition) const;
  /// The number of paused trials of a partition.
  [[nodiscard]] int paused(const std::string& partition) const;
  /// The number of trials in that state.
  [[nodiscard]] int count(trials::State state) const { return counts_.at(static_cast<std::size_t>(state)); }

  /// Whether every trial that will ever be drawn is done.
  [[nodiscard]] bool finished() const;
  /// Trial-epochs recorded.
  [[nodiscard]] std::int64_t epochs() const { return epochs_; }
  /// Trial-epochs still to come if no trial fails; unset: no limit.
  [[nodiscard]] std::optional<std::int64_t> epochs_left() const;
  /// Epochs until the trial's next decision.
  [[nodiscard]] int epochs_to_target(int draw) const;
  /// The best value of the COMPLETE trials and of the unfinished ones, as if these ended now; none of several
  /// objectives.
  [[nodiscard]] std::optional<BestSoFar> best() const;
  /// See Standings::front().
  [[nodiscard]] std::optional<std::vector<int>> front() const { return standings_.front(); }

 private:
  void push(int number, trials::Params params);
  int push_repetitions(int k, int rounds);
  [[nodiscard]] bool can_ask() const;
  void adopt(trials::Trial stored);
  void check_cap() const;
  [[nodiscard]] std::vector<search::Verdict> replay();
  void replay(int draw, const trials::EpochRecord* record);
  void settle_strangers();
  void replay_verdicts(std::vector<search::Verdict>& copies_due);
  void hear(int draw, int epoch, const Measurement& measured);
  void forget_value(int draw);
  void take_value(int draw, int epoch, const Measurement& measured);
  void set_phase(int draw, Phase phase);
  void count_done(int draw);
  void begin(int draw);

  const StudyConfig& config_;
  Strategy strategy_;
  Draws draws_;
  std::vector<TrialRecord> entries_;
  std::vector<trials::Trial> trials_;
  std::array<int, 5> counts_{};  ///< Number of trials by trials::State.
  Standings standings_;
  HeldStates held_;                    ///< The account of TrialRecord::state.
  std::map<std::string, int> paused_;  ///< Number of paused trials by partition.
  std::int64_t epochs_ = 0;
  int entered_ = 0;   ///< Trials before this draw are in the store.
  int begun_ = 0;     ///< The number of those that have TrialRecord::begun.
  int enqueued_ = 0;  ///< The number of configurations that the sampler did not draw.
};

}  // namespace hfta::engine
