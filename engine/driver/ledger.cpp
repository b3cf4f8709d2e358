#include "engine/driver/ledger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "engine/driver/measure.hpp"

namespace hfta::engine {

Ledger::Ledger(const StudyConfig& config, const std::vector<int>& run_caps)
    : config_(config), strategy_(make_strategy(config, run_caps)) {}

bool Ledger::can_draw() const { return !exhausted_ && (!strategy_.cap || drawn() < *strategy_.cap); }

std::vector<trials::Params> Ledger::ask(int k) {
  if (strategy_.cap) k = std::min(k, *strategy_.cap - drawn());
  if (k <= 0 || exhausted_) return {};
  std::vector<trials::Params> params = strategy_.sampler->ask(drawn(), k, trials_);
  exhausted_ = static_cast<int>(params.size()) < k;
  return params;
}

int Ledger::add(int number, trials::Params params) {
  trials::Trial trial;
  trial.number = number;
  trial.params = std::move(params);
  trials_.push_back(std::move(trial));
  entries_.emplace_back();
  return drawn() - 1;
}

Told Ledger::report(int draw, const SlotReport& report) {
  Entry& e = entry(draw);
  if (report.epoch != e.trained + 1) {
    throw Error(ErrorKind::kInternal, fmt::format("trial {}: found a report of epoch {}, wanted epoch {}",
                                                  trial(draw).number, report.epoch, e.trained + 1));
  }
  e.trained = report.epoch;
  const Measurement measured = measure(report.metrics, config_.metric, report.epoch);
  Told told{report.epoch > e.recorded, measured.value, measured.failure};
  if (!told.recorded) {
    // The scheduler heard a finite value for this epoch once; it can only be told that the trial is gone.
    e.decision = told.failure.empty() ? search::Decision::kContinue : search::Decision::kStop;
    if (!told.failure.empty()) strategy_.scheduler->fail(draw);
    return told;
  }
  trial(draw).epochs.push_back({report.epoch, report.metrics});
  e.recorded = report.epoch;
  ++epochs_;
  if (!told.failure.empty()) {
    e.decision = strategy_.scheduler->report(draw, report.epoch, std::numeric_limits<double>::quiet_NaN());
    return told;
  }
  take_value(draw, report.epoch, measured.value);
  e.decision = strategy_.scheduler->report(draw, report.epoch, *e.value);
  return told;
}

// The value that the trial would have if it ended now.
void Ledger::take_value(int draw, int epoch, double value) {
  Entry& e = entry(draw);
  if (!config_.select_best || !e.value || trials::better(value, *e.value, config_.goal)) {
    e.value = value;
    e.value_epoch = epoch;
  }
}

std::optional<BestSoFar> Ledger::best() const {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const trials::State state = trials_[i].state;
    const bool counts = state == trials::State::kComplete || state == trials::State::kRunning;
    if (!counts || !entries_[i].value) continue;
    if (!best || trials::better(*entries_[i].value, *entries_[*best].value, config_.goal)) best = i;
  }
  if (!best) return std::nullopt;
  return BestSoFar{trials_[*best].number, entries_[*best].value_epoch, *entries_[*best].value, trials_[*best].params};
}

std::vector<search::Verdict> Ledger::take_verdicts() {
  std::vector<search::Verdict> verdicts = strategy_.scheduler->take_verdicts();
  for (const search::Verdict& verdict : verdicts) entry(verdict.trial).decision = verdict.decision;
  return verdicts;
}

void Ledger::finish(int draw, trials::State state, const std::string& reason) {
  Entry& e = entry(draw);
  trials::Trial& t = trial(draw);
  e.phase = Phase::kDone;
  e.state.reset();
  e.best_state.reset();
  t.state = state;
  t.reason = reason;
  t.value = state == trials::State::kFail ? std::nullopt : e.value;
  ++done_;
}

bool Ledger::finished() const { return !can_draw() && done_ == drawn(); }

std::optional<std::int64_t> Ledger::epochs_left() const {
  if (!strategy_.cap) return std::nullopt;
  if (finished()) return 0;
  const std::int64_t all = strategy_.scheduler->planned_epochs(0, *strategy_.cap);
  return std::max<std::int64_t>(0, all - epochs_);
}

int Ledger::epochs_to_target(int draw) { return std::max(1, strategy_.scheduler->target(draw) - entry(draw).trained); }

}  // namespace hfta::engine
