// TrialTable's part of resuming: the stored epochs are reported to the scheduler again.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "engine/driver/measure.hpp"
#include "engine/driver/trial_table.hpp"

namespace hfta::engine {

std::vector<trials::Trial> drawn_trials(storage::Store& store, const std::string& study) {
  const std::vector<int> numbers = store.draws(study);  // before the trials, see Store::draws
  std::map<int, trials::Trial> by_number;
  for (trials::Trial& trial : store.trials(study)) by_number.emplace(trial.number, std::move(trial));
  std::vector<trials::Trial> drawn;
  for (const int number : numbers) {
    const auto found = by_number.find(number);
    if (found == by_number.end()) {
      throw Error(ErrorKind::kStorage,
                  fmt::format("study '{}': trial {} is absent from the store, wanted every trial that was drawn", study,
                              number));
    }
    drawn.push_back(std::move(found->second));
  }
  return drawn;
}

void TrialTable::restore(storage::Store& store) {
  for (trials::Trial& stored : drawn_trials(store, config_.study)) {
    strategy_.scheduler->enter(drawn(), stored.params);
    trials_.push_back(std::move(stored));
    if (learns_) history_.add(trials_.back().params);
    if (trials_.back().state == trials::State::kWaiting) trials_.back().state = trials::State::kRunning;
    TrialRecord& e = entries_.emplace_back();
    if (!trials_.back().copies.empty()) e.copied = trials_.back().copies.back().epoch;
    ++counts_[static_cast<std::size_t>(trials_.back().state)];
    enqueued_ += trials_.back().enqueued ? 1 : 0;
  }
  entered_ = drawn();
  // A study that had no cap may be given one that its trials have passed already.
  if (strategy_.cap && drawn() > *strategy_.cap) {
    throw Error(ErrorKind::kConfig,
                fmt::format("{}: run_cap: found {}, wanted at least {}, what study '{}' "
                            "has; --fresh starts a new one beside it",
                            config_.file.string(), *strategy_.cap / repetitions().count(),
                            repetitions().rounded_up(drawn()) / repetitions().count(), config_.study));
  }
  replay();
  for (int draw = 0; draw < drawn(); ++draw) {
    if (entry(draw).recorded > 0 || entry(draw).phase == Phase::kDone) {
      begin(draw);
    } else {
      trial(draw).started.reset();  // the store has the time at which its row was made
    }
  }
}

// Reports in order of epoch, then of draw. Rungs fall due between epochs, as in the run, since trials train on only
// after the verdict. Visits recorded epochs only: most trials end long before the longest one.
void TrialTable::replay() {
  std::map<int, std::vector<Past>> by_epoch;
  for (int draw = 0; draw < drawn(); ++draw) {
    const trials::Trial& t = trial(draw);
    if (t.epochs.empty()) by_epoch[0].push_back({draw, nullptr});  // it may have failed before its first epoch
    for (const trials::EpochRecord& record : t.epochs) by_epoch[record.epoch].push_back({draw, &record});
  }
  for (const auto& [epoch, those] : by_epoch) {
    for (const Past& past : those) replay(past);
    replay_verdicts();
    for (const Past& past : those) {
      if (was_copied(past.draw, epoch)) forget_value(past.draw);
    }
  }
  for (trials::Trial& trial : trials_) {
    for (trials::EpochRecord& record : trial.epochs) record.metrics = of_objectives(record.metrics, config_.objectives);
  }
  settle_strangers();
}

bool TrialTable::was_copied(int draw, int epoch) {
  const std::vector<trials::Copy>& copies = trial(draw).copies;
  return std::any_of(copies.begin(), copies.end(), [=](const trials::Copy& copy) { return copy.epoch == epoch; });
}

// A run that was killed may have recorded the epochs that a verdict follows from, and not the verdict.
void TrialTable::replay_verdicts() {
  for (search::Verdict& verdict : take_verdicts()) {
    if (verdict.copy && !was_copied(verdict.trial, recorded(verdict.trial))) copies_due_.push_back(std::move(verdict));
  }
}

void TrialTable::replay(const Past& past) {
  const trials::Trial& t = trial(past.draw);
  TrialRecord& e = entry(past.draw);
  bool told = false;
  if (past.record != nullptr) {
    ++epochs_;
    e.recorded = past.record->epoch;
    const Measurement measured = measure(past.record->metrics, config_.objectives, e.recorded);
    told = !measured.failure.empty();
    if (t.state == trials::State::kRunning) e.failure = measured.failure;
    if (!told) take_value(past.draw, e.recorded, measured);
    if (learns_) history_.report(past.draw, told, e.value, e.others);
    e.decision =
        strategy_.scheduler->report(past.draw, e.recorded, told ? std::numeric_limits<double>::quiet_NaN() : *e.value);
  }
  const int last = t.epochs.empty() ? 0 : t.epochs.back().epoch;
  if (t.state == trials::State::kFail && e.recorded == last && !told) {
    strategy_.scheduler->fail(past.draw);
    e.decision = search::Decision::kStop;
  }
}

// Settles trials of ours that another program may have ended. The scheduler must not wait for them.
void TrialTable::settle_strangers() {
  for (int draw = 0; draw < drawn(); ++draw) {
    TrialRecord& e = entry(draw);
    if (trial(draw).state == trials::State::kRunning) continue;
    count_done(draw);
    if (learns_) history_.end(draw, trial(draw).state, trial(draw).ended_round);
    const bool expected = e.decision == search::Decision::kStop || e.decision == search::Decision::kComplete;
    if (!expected) strategy_.scheduler->fail(draw);
  }
  replay_verdicts();
  for (int draw = 0; draw < drawn(); ++draw) {
    const TrialRecord& e = entry(draw);
    if (e.phase != Phase::kDone && e.decision == search::Decision::kPause) set_phase(draw, Phase::kPaused);
  }
}

}  // namespace hfta::engine
