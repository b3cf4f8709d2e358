// TrialTable's part of resuming: the stored epochs are reported to the scheduler again.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "engine/driver/goals/measure.hpp"
#include "engine/driver/trials/trial_table.hpp"

namespace hfta::engine {
namespace {

/// An epoch that the store has of a trial; `record` null: the store has none.
struct Past {
  int draw = 0;
  const trials::EpochRecord* record = nullptr;
};

/// The epochs of all trials in order of epoch, then of draw. Has recorded epochs only: most trials end long before the
/// longest one.
std::map<int, std::vector<Past>> by_epoch(const std::vector<trials::Trial>& trials) {
  std::map<int, std::vector<Past>> all;
  for (int draw = 0; draw < static_cast<int>(trials.size()); ++draw) {
    const trials::Trial& t = trials[static_cast<std::size_t>(draw)];
    if (t.epochs.empty()) all[0].push_back({draw, nullptr});  // it may have failed before its first epoch
    for (const trials::EpochRecord& record : t.epochs) all[record.epoch].push_back({draw, &record});
  }
  return all;
}

bool was_copied(const trials::Trial& trial, int epoch) {
  const std::vector<trials::Copy>& copies = trial.copies;
  return std::any_of(copies.begin(), copies.end(), [=](const trials::Copy& copy) { return copy.epoch == epoch; });
}

}  // namespace

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

std::vector<search::Verdict> TrialTable::restore(storage::Store& store) {
  for (trials::Trial& stored : drawn_trials(store, config_.study)) adopt(std::move(stored));
  entered_ = drawn();
  check_cap();
  std::vector<search::Verdict> copies_due = replay();
  for (int draw = 0; draw < drawn(); ++draw) {
    if (entry(draw).recorded > 0 || entry(draw).phase == Phase::kDone) {
      begin(draw);
    } else {
      trial(draw).started.reset();  // the store has the time at which its row was made
    }
  }
  return copies_due;
}

void TrialTable::adopt(trials::Trial stored) {
  strategy_.scheduler->enter(drawn(), stored.params);
  trials_.push_back(std::move(stored));
  draws_.add(trials_.back().params);
  if (trials_.back().state == trials::State::kWaiting) trials_.back().state = trials::State::kRunning;
  TrialRecord& e = entries_.emplace_back();
  if (!trials_.back().copies.empty()) e.copied = trials_.back().copies.back().epoch;
  ++counts_[static_cast<std::size_t>(trials_.back().state)];
  enqueued_ += trials_.back().enqueued ? 1 : 0;
}

// A study that had no cap may be given one that its trials have passed already.
void TrialTable::check_cap() const {
  if (!strategy_.cap || drawn() <= *strategy_.cap) return;
  throw Error(ErrorKind::kConfig, fmt::format("{}: run_cap: found {}, wanted at least {}, what study '{}' "
                                              "has; --fresh starts a new one beside it",
                                              config_.file.string(), *strategy_.cap / repetitions().count(),
                                              repetitions().configurations_in(drawn()), config_.study));
}

// Reports in order of epoch, then of draw. Rungs fall due between epochs, as in the run, since trials train on only
// after the verdict. Returns the copies that fell due and that the store does not have.
std::vector<search::Verdict> TrialTable::replay() {
  std::vector<search::Verdict> copies_due;
  for (const auto& [epoch, those] : by_epoch(trials_)) {
    for (const Past& past : those) replay(past.draw, past.record);
    replay_verdicts(copies_due);
    for (const Past& past : those) {
      if (was_copied(trial(past.draw), epoch)) forget_value(past.draw);
    }
  }
  for (trials::Trial& trial : trials_) {
    for (trials::EpochRecord& record : trial.epochs) record.metrics = of_objectives(record.metrics, config_.objectives);
  }
  settle_strangers();
  replay_verdicts(copies_due);
  for (int draw = 0; draw < drawn(); ++draw) {
    const TrialRecord& e = entry(draw);
    if (e.phase != Phase::kDone && e.decision == search::Decision::kPause) set_phase(draw, Phase::kPaused);
  }
  return copies_due;
}

// A run that was killed may have recorded the epochs that a verdict follows from, and not the verdict.
void TrialTable::replay_verdicts(std::vector<search::Verdict>& copies_due) {
  for (search::Verdict& verdict : take_verdicts()) {
    const bool due = verdict.copy && !was_copied(trial(verdict.trial), recorded(verdict.trial));
    if (due) copies_due.push_back(std::move(verdict));
  }
}

// `record`: null where the store has no epoch of the trial.
void TrialTable::replay(int draw, const trials::EpochRecord* record) {
  const trials::Trial& t = trial(draw);
  TrialRecord& e = entry(draw);
  bool told = false;
  if (record != nullptr) {
    const Measurement measured = measure(record->metrics, config_.objectives, record->epoch);
    told = !measured.failure.empty();
    if (t.state == trials::State::kRunning) e.failure = measured.failure;
    hear(draw, record->epoch, measured);
  }
  const int last = t.epochs.empty() ? 0 : t.epochs.back().epoch;
  if (t.state == trials::State::kFail && e.recorded == last && !told) {
    strategy_.scheduler->fail(draw);
    e.decision = search::Decision::kStop;
  }
}

// Settles trials of ours that another program may have ended. The scheduler must not wait for them.
void TrialTable::settle_strangers() {
  for (int draw = 0; draw < drawn(); ++draw) {
    const TrialRecord& e = entry(draw);
    if (trial(draw).state == trials::State::kRunning) continue;
    count_done(draw);
    draws_.end(draw, trial(draw).state, trial(draw).ended_round);
    const bool expected = e.decision == search::Decision::kStop || e.decision == search::Decision::kComplete;
    if (!expected) strategy_.scheduler->fail(draw);
  }
}

}  // namespace hfta::engine
