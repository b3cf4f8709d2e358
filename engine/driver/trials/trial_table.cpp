#include "engine/driver/trials/trial_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.hpp"
#include "engine/driver/goals/measure.hpp"
#include "engine/driver/goals/selection.hpp"

namespace hfta::engine {
namespace {

constexpr int kUnnumbered = -1;

}  // namespace

TrialTable::TrialTable(const StudyConfig& config, const std::vector<int>& run_caps, const search::History& prior,
                       std::function<int()> slots)
    : config_(config),
      strategy_(make_strategy(config, run_caps, prior, std::move(slots))),
      draws_(config, *strategy_.sampler),
      standings_(config) {}

bool TrialTable::can_draw() const { return missing_repetitions() > 0 || can_ask(); }

bool TrialTable::can_ask() const {
  const std::optional<int> most = cap();
  return !draws_.exhausted() && (!most || drawn() < *most);
}

int TrialTable::plan(int k, int rounds, std::optional<int> like) {
  const int first = drawn();
  k -= push_repetitions(k, rounds);
  if (const std::optional<int> most = cap()) k = std::min(k, *most - drawn());
  if (k <= 0 || draws_.exhausted()) return drawn() - first;
  const int asked = like ? 1 : repetitions().configurations_in(k);
  const int configurations = drawn() / repetitions().count() - enqueued_;
  for (const trials::Params& one : draws_.ask(configurations, asked, rounds, like ? &params(*like) : nullptr)) {
    push(kUnnumbered, repetitions().params_of(one, 0));
    if (learns()) trials_.back().seen_rounds = rounds;
    k -= 1 + push_repetitions(k - 1, rounds);
  }
  return drawn() - first;
}

// The repetitions that the latest configuration lacks, at most `k` of them; returns how many.
int TrialTable::push_repetitions(int k, int rounds) {
  k = std::min(k, missing_repetitions());
  for (int i = 0; i < k; ++i) {
    const trials::Params first = trial(repetitions().first_of(drawn())).params;
    push(kUnnumbered, repetitions().params_of(repetitions().configuration_of(first), repetitions().index_of(drawn())));
    if (learns()) trials_.back().seen_rounds = rounds;
  }
  return std::max(k, 0);
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
    draws_.take_back();
  }
  draws_.ask_again();
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
  draws_.add(trial.params);
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
  ReportResult told{report.epoch > e.recorded, measured.values.front(), measured.failure};
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
  hear(draw, report.epoch, measured);
  return told;
}

// An epoch that is recorded: it counts for the trial's value, for later draws and for the scheduler.
void TrialTable::hear(int draw, int epoch, const Measurement& measured) {
  TrialRecord& e = entry(draw);
  const bool diverged = !measured.failure.empty();
  ++epochs_;
  e.recorded = epoch;
  if (!diverged) take_value(draw, epoch, measured);
  draws_.report(draw, diverged, e.values);
  e.decision =
      strategy_.scheduler->report(draw, epoch, diverged ? std::numeric_limits<double>::quiet_NaN() : *e.value());
}

// The value that the trial would have if it ended now.
void TrialTable::take_value(int draw, int epoch, const Measurement& measured) {
  TrialRecord& e = entry(draw);
  if (!is_selected(config_, measured.values.front(), e.value())) return;
  e.values = measured.values;
  e.value_epoch = epoch;
  standings_.rank(draw, measured.values.front());
}

void TrialTable::forget_value(int draw) {
  TrialRecord& e = entry(draw);
  standings_.remove(draw);
  e.values.clear();
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
  const std::optional<int> leader = standings_.leader();
  if (!leader) return std::nullopt;
  const auto best = static_cast<std::size_t>(*leader);
  return BestSoFar{trials_[best].number, entries_[best].value_epoch, *entries_[best].value(),
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
  if (learns()) t.ended_round = round;
  draws_.end(draw, state, round);
  t.values = state == trials::State::kFail ? std::vector<double>() : e.values;
  if (state == trials::State::kFail) strategy_.scheduler->fail(draw);  // rungs must not wait for the trial
  count_done(draw);
}

void TrialTable::count_done(int draw) {
  begin(draw);
  set_phase(draw, Phase::kDone);
  standings_.end(draw, trial(draw));
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
  TrialRecord& e = entry(draw);
  e.state = std::move(state);
  if (!e.state) return held_.let_go(draw);
  held_.hold(draw, e.state->size() + (e.best_state ? e.best_state->size() : 0), e.changed);
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
  held_.let_go(draw);
  entry(draw).state.reset();
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

int TrialTable::epochs_to_target(int draw) const {
  return std::max(1, strategy_.scheduler->target(draw) - entry(draw).recorded);
}

}  // namespace hfta::engine
