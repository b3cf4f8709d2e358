#include "engine/driver/trial_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "engine/driver/budget.hpp"
#include "engine/driver/measure.hpp"
#include "engine/driver/selection.hpp"
#include "search/repetition.hpp"

namespace hfta::engine {
namespace {

constexpr int kUnnumbered = -1;

}  // namespace

TrialTable::TrialTable(const StudyConfig& config, const std::vector<int>& run_caps, const search::History& prior)
    : config_(config),
      strategy_(make_strategy(config, run_caps, prior)),
      learns_(strategy_.sampler->learns() || ends_early(config)) {}

bool TrialTable::can_draw() const { return missing_repetitions() > 0 || can_ask(); }

bool TrialTable::can_ask() const {
  const std::optional<int> most = cap();
  return !exhausted_ && (!most || drawn() < *most);
}

int TrialTable::plan(int k, int rounds, std::optional<int> like) {
  const int first = drawn();
  k -= push_repetitions(k, rounds);
  if (const std::optional<int> most = cap()) k = std::min(k, *most - drawn());
  if (k <= 0 || exhausted_) return drawn() - first;
  const int asked = like ? 1 : repetitions().rounded_up(k) / repetitions().count();
  const std::vector<trials::Params> params = ask(asked, rounds, like);
  exhausted_ = static_cast<int>(params.size()) < asked;
  for (const trials::Params& one : params) {
    push(kUnnumbered, repetitions().params_of(one, 0));
    if (learns_) trials_.back().seen_rounds = rounds;
    k -= 1 + push_repetitions(k - 1, rounds);
  }
  return drawn() - first;
}

std::vector<trials::Params> TrialTable::ask(int k, int rounds, std::optional<int> like) {
  const int first = drawn() / repetitions().count() - enqueued_;
  if (!draws_learn()) return strategy_.sampler->ask(first, k, {});  // the sampler needs no history
  const search::History& trials = history_.after(rounds);
  search::History configurations;
  if (repetitions().any()) {
    configurations = search::by_configuration(trials, repetitions(), config_.objectives.front().goal);
  }
  const search::History& seen = repetitions().any() ? configurations : trials;
  if (like) {
    const trials::Params given = config_.splitting(repetitions().configuration_of(params(*like)));
    std::vector<trials::Params> asked = strategy_.sampler->ask(first, k, seen, given);
    const bool found = std::all_of(asked.begin(), asked.end(),
                                   [&](const trials::Params& one) { return config_.splitting(one) == given; });
    if (found) return asked;
  }
  return strategy_.sampler->ask(first, k, seen);
}

// The repetitions that the latest configuration lacks, at most `k` of them; returns how many.
int TrialTable::push_repetitions(int k, int rounds) {
  k = std::min(k, missing_repetitions());
  for (int i = 0; i < k; ++i) {
    const trials::Params first = trial(repetitions().first_of(drawn())).params;
    push(kUnnumbered, repetitions().params_of(repetitions().configuration_of(first), repetitions().index_of(drawn())));
    if (learns_) trials_.back().seen_rounds = rounds;
  }
  return std::max(k, 0);
}

std::vector<const trials::Trial*> TrialTable::best_trials() const {
  const bool several = config_.has_several_objectives();
  if (!several && !repetitions().any()) return trials::best_of(trials_, config_.objectives);
  std::vector<const trials::Trial*> drawn = in_order_of_draws();
  if (several) {
    std::erase_if(drawn, [&](const trials::Trial* trial) { return !front_.contains(trial->number); });
    return drawn;
  }
  const trials::Trial* best = trials::best_of(drawn, repetitions(), config_.objectives.front().goal);
  return best == nullptr ? std::vector<const trials::Trial*>{} : std::vector{best};
}

std::optional<double> TrialTable::best_value() const {
  if (!config_.target) return std::nullopt;  // what follows walks all trials
  if (repetitions().any()) {
    return trials::best_value(in_order_of_draws(), repetitions(), config_.objectives.front().goal);
  }
  const std::vector<const trials::Trial*> best = best_trials();
  return best.empty() ? std::nullopt : best.front()->value;
}

std::vector<const trials::Trial*> TrialTable::in_order_of_draws() const {
  std::vector<const trials::Trial*> drawn;
  for (const trials::Trial& trial : trials_) drawn.push_back(&trial);
  return drawn;
}

std::optional<std::vector<int>> TrialTable::front() const {
  return config_.has_several_objectives() ? std::optional(front_.numbers()) : std::nullopt;
}

void TrialTable::enter(const std::vector<int>& numbers) {
  for (const int number : numbers) trial(entered_++).number = number;
}

double TrialTable::mean_epochs() const {
  const std::optional<int> most = cap();
  if (!most || *most < 1) return strategy_.scheduler->max_epochs();
  return std::max(1.0, static_cast<double>(strategy_.scheduler->planned_epochs(0, *most)) / *most);
}

void TrialTable::forget_planned() {
  for (; drawn() > entered_; --counts_[static_cast<std::size_t>(trials::State::kRunning)]) {
    trials_.pop_back();
    entries_.pop_back();
    if (learns_) history_.pop();
  }
  exhausted_ = false;
}

int TrialTable::add(int number, trials::Params params, bool enqueued) {
  push(number, std::move(params));
  trials_.back().enqueued = enqueued;
  enqueued_ += enqueued ? 1 : 0;
  return entered_++;
}

void TrialTable::push(int number, trials::Params params) {
  trials::Trial trial;
  trial.number = number;
  trial.params = std::move(params);
  if (learns_) history_.add(trial.params);
  strategy_.scheduler->enter(drawn(), trial.params);
  trials_.push_back(std::move(trial));
  entries_.emplace_back();
  ++counts_[static_cast<std::size_t>(trials::State::kRunning)];
}

ReportResult TrialTable::report(int draw, const SlotReport& report) {
  TrialRecord& e = entry(draw);
  if (report.epoch != e.trained + 1) {
    throw Error(ErrorKind::kInternal, fmt::format("trial {}: found a report of epoch {}, wanted epoch {}",
                                                  trial(draw).number, report.epoch, e.trained + 1));
  }
  e.trained = report.epoch;
  const Measurement measured = measure(report.metrics, config_.objectives, report.epoch);
  ReportResult told{report.epoch > e.recorded, measured.value, measured.failure};
  if (!told.recorded) {
    // The scheduler heard a finite value for this epoch once; it can only be told that the trial is gone.
    const bool caught_up = e.trained == e.recorded;
    e.decision = caught_up ? std::exchange(e.due, search::Decision::kContinue) : search::Decision::kContinue;
    if (!told.failure.empty()) {
      e.decision = search::Decision::kStop;
      strategy_.scheduler->fail(draw);
    }
    return told;
  }
  trial(draw).epochs.push_back({report.epoch, of_objectives(report.metrics, config_.objectives)});
  e.recorded = report.epoch;
  ++epochs_;
  if (!told.failure.empty()) {
    e.decision = strategy_.scheduler->report(draw, report.epoch, std::numeric_limits<double>::quiet_NaN());
    if (learns_) history_.report(draw, true, e.value, e.others);
    return told;
  }
  take_value(draw, report.epoch, measured);
  if (learns_) history_.report(draw, false, e.value, e.others);
  e.decision = strategy_.scheduler->report(draw, report.epoch, *e.value);
  return told;
}

// Ascending order is best first, ties to the lower draw.
std::pair<double, int> TrialTable::rank_of(int draw) const {
  const double value = entries_.at(static_cast<std::size_t>(draw)).value.value();
  return {config_.objectives.front().goal == trials::Goal::kMinimize ? value : -value, draw};
}

// The value that the trial would have if it ended now.
void TrialTable::take_value(int draw, int epoch, const Measurement& measured) {
  TrialRecord& e = entry(draw);
  if (!is_selected(config_, measured.value, e.value)) return;
  if (e.value) ranking_.erase(rank_of(draw));
  e.value = measured.value;
  e.others = measured.others;
  e.value_epoch = epoch;
  ranking_.insert(rank_of(draw));
}

void TrialTable::forget_value(int draw) {
  TrialRecord& e = entry(draw);
  if (e.value) ranking_.erase(rank_of(draw));
  e.value.reset();
  e.others.clear();
  e.value_epoch = 0;
  e.best_state.reset();
}

void TrialTable::copy(int draw, const search::CopyOf& copy) {
  TrialRecord& e = entry(draw);
  trial(draw).copies.push_back({e.recorded, trial(copy.source).number, copy.params});
  release(draw);
  forget_value(draw);
  e.copied = e.trained = e.recorded;
  e.changed = false;
}

std::optional<BestSoFar> TrialTable::best() const {
  if (ranking_.empty() || config_.has_several_objectives()) return std::nullopt;
  const auto best = static_cast<std::size_t>(ranking_.begin()->second);
  return BestSoFar{trials_[best].number, entries_[best].value_epoch, *entries_[best].value,
                   trials::latest_params(trials_[best])};
}

std::vector<search::Verdict> TrialTable::take_verdicts() {
  std::vector<search::Verdict> verdicts = strategy_.scheduler->take_verdicts();
  for (const search::Verdict& verdict : verdicts) entry(verdict.trial).decision = verdict.decision;
  return verdicts;
}

void TrialTable::finish(int draw, trials::State state, const std::string& reason, std::optional<int> round) {
  TrialRecord& e = entry(draw);
  trials::Trial& t = trial(draw);
  release(draw);
  e.best_state.reset();
  --counts_[static_cast<std::size_t>(t.state)];
  t.state = state;
  ++counts_[static_cast<std::size_t>(t.state)];
  t.reason = reason;
  if (learns_) {
    t.ended_round = round;
    history_.end(draw, state, round);
  }
  t.value = state == trials::State::kFail ? std::nullopt : e.value;
  if (t.value) t.others = e.others;
  if (state == trials::State::kFail) strategy_.scheduler->fail(draw);  // rungs must not wait for the trial
  count_done(draw);
}

void TrialTable::add_to_front(const trials::Trial& trial) {
  if (!config_.has_several_objectives()) return;
  if (std::optional<trials::Point> point = trials::point_of(trial, config_.objectives)) {
    (void)front_.add(trial.number, std::move(*point));
  }
}

void TrialTable::count_done(int draw) {
  begin(draw);
  set_phase(draw, Phase::kDone);
  add_to_front(trial(draw));
  if (entry(draw).value && trial(draw).state != trials::State::kComplete) ranking_.erase(rank_of(draw));
}

void TrialTable::set_phase(int draw, Phase phase) {
  TrialRecord& e = entry(draw);
  if (e.phase == Phase::kPaused) --paused_[e.partition];
  e.phase = phase;
  if (e.phase == Phase::kPaused) ++paused_[e.partition];
}

void TrialTable::assign(int draw, std::string partition) {
  TrialRecord& e = entry(draw);
  const Phase phase = e.phase;
  if (phase == Phase::kPaused) set_phase(draw, Phase::kReady);
  e.partition = std::move(partition);
  set_phase(draw, phase);
}

void TrialTable::rest(int draw, Phase phase, HeldState state) {
  set_phase(draw, phase);
  entry(draw).state = std::move(state);
  hold(draw);
}

void TrialTable::begin(int draw) {
  begun_ += entry(draw).begun ? 0 : 1;
  entry(draw).begun = true;
}

void TrialTable::seat(int draw) {
  begin(draw);
  set_phase(draw, Phase::kTraining);
  release(draw);
}

void TrialTable::release(int draw) {
  let_go(draw);
  entry(draw).state.reset();
}

void TrialTable::hold(int draw) {
  const TrialRecord& e = entry(draw);
  let_go(draw);
  if (!e.state) return;
  const std::size_t bytes = e.state->size() + (e.best_state ? e.best_state->size() : 0);
  holding_.emplace(draw, bytes);
  held_bytes_ += bytes;
  if (e.changed) unsaved_.insert(draw);
}

void TrialTable::let_go(int draw) {
  const auto held = holding_.find(draw);
  if (held == holding_.end()) return;
  held_bytes_ -= held->second;
  holding_.erase(held);
  unsaved_.erase(draw);
}

int TrialTable::example_of(const std::string& partition) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const TrialRecord& entry) { return entry.partition == partition; });
  return static_cast<int>(found - entries_.begin());
}

int TrialTable::paused(const std::string& partition) const {
  const auto found = paused_.find(partition);
  return found == paused_.end() ? 0 : found->second;
}

bool TrialTable::finished() const { return !can_draw() && count(trials::State::kRunning) == 0; }

std::optional<std::int64_t> TrialTable::epochs_left() const {
  const std::optional<int> most = cap();
  if (!most) return std::nullopt;
  if (finished()) return 0;
  const std::optional<std::int64_t> budget = config_.budget.epochs;
  if (*most == kEndless && !budget) return std::nullopt;
  const std::int64_t all = strategy_.scheduler->planned_epochs(0, *most);
  return std::max<std::int64_t>(0, std::min(all, budget.value_or(all)) - epochs_);
}

int TrialTable::epochs_to_target(int draw) {
  return std::max(1, strategy_.scheduler->target(draw) - entry(draw).recorded);
}

}  // namespace hfta::engine
