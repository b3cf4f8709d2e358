// Driver: the results of an epoch.

#include <fmt/format.h>

#include <utility>

#include "base/error.hpp"
#include "engine/driver/driver_impl.hpp"

namespace hfta::engine {

using search::Decision;
using trials::State;

// Reports are taken in order of slot. Slots are decided only when every report is in: a verdict may call back a trial
// that has just been paused, which then keeps its slot.
void Driver::Impl::end_round(std::size_t device, double seconds) {
  OpenArray& array = *packer.arrays()[device];
  const std::vector<SlotReport>& reports = *devices[device].reports;
  if (catching_up()) return end_untold_round(array, reports);
  page.changes.rounds.push_back({round, array.id(), array.width(), array.occupied(), seconds});
  if (auto changed = array.take_changes()) {
    page.events.emplace_back(ArrayChanged{changed->array, changed->device, changed->partition, changed->width,
                                          changed->chunk, changed->threads});
    page.changes.arrays.push_back(std::move(*changed));
  }
  for (const SlotReport& report : reports) record(array, report);
  act_on(ledger.take_verdicts(), &array);
  for (const SlotReport& report : reports) act(array, report.slot);
  failures.clear();
  page.changes.progress = storage::Progress{spent(), ""};
  ++round;
  rate.add(seams.clock.seconds(), ledger.epochs());
}

void Driver::Impl::end_untold_round(OpenArray& array, const std::vector<SlotReport>& reports) {
  for (const SlotReport& report : reports) {
    const int draw = array.draw_in(report.slot);
    const ReportResult told = ledger.report(draw, report);
    if (!told.failure.empty()) failures[draw] = told.failure;
    array.follow(report.slot, ledger);
  }
  for (const SlotReport& report : reports) act(array, report.slot);
  failures.clear();
}

void Driver::Impl::record(OpenArray& array, const SlotReport& report) {
  const int draw = array.draw_in(report.slot);
  if (draw == OpenArray::kEmpty) {
    throw Error(ErrorKind::kInternal,
                fmt::format("driver: slot {} is empty, and reported epoch {}", report.slot, report.epoch));
  }
  const int number = ledger.trial(draw).number;
  const ReportResult told = ledger.report(draw, report);
  page.changes.occupancy.push_back({array.id(), round, report.slot, number, report.epoch});
  if (told.recorded) {
    const std::optional<double> intermediate =
        config.has_several_objectives() ? std::nullopt : std::optional(told.value);
    page.changes.epochs.push_back({number, {report.epoch, report.metrics}, intermediate});
    page.events.emplace_back(EpochEnded{number, report.epoch, report.metrics, told.value, array.id(), report.slot});
  } else {
    array.follow(report.slot, ledger);
  }
  if (!told.failure.empty()) failures[draw] = told.failure;
}

void Driver::Impl::act(OpenArray& array, int slot) {
  const int draw = array.draw_in(slot);
  if (draw == OpenArray::kEmpty) return;  // its trial goes on from a copy, elsewhere
  TrialRecord& entry = ledger.entry(draw);
  const auto failure = failures.find(draw);
  if (failure != failures.end()) {
    finish(draw, State::kFail, failure->second);
    array.clear(slot);
    return;
  }
  if (config.select_best && entry.trained == entry.value_epoch) entry.best_state = array.extract(slot);
  if (catch_up(array, slot)) return;
  switch (entry.decision) {
    case Decision::kContinue:
      return;
    case Decision::kPause:
      ledger.rest(draw, Phase::kPaused, array.extract(slot));
      break;
    case Decision::kStop:
      finish(draw, State::kPruned, "");
      break;
    case Decision::kComplete:
      keeper.keep(draw, ledger.trial(draw).number, entry.values(), entry.value_epoch,
                  config.select_best ? entry.best_state : array.extract(slot), page);
      finish(draw, State::kComplete, "");
      break;
  }
  array.clear(slot);
}

void Driver::Impl::act_on(const std::vector<search::Verdict>& verdicts, OpenArray* array) {
  for (const int draw : copy_trials(verdicts, array)) queue.push(draw);
  for (const search::Verdict& verdict : verdicts) {
    if (!verdict.copy) act_on_paused(verdict);
  }
}

void Driver::Impl::act_on_paused(const search::Verdict& verdict) {
  const Phase phase = ledger.entry(verdict.trial).phase;
  if (verdict.decision == Decision::kPause) {
    if (phase != Phase::kReady) return;
    queue.take(verdict.trial);
    ledger.rest(verdict.trial, Phase::kPaused, ledger.entry(verdict.trial).state);
    return;
  }
  if (phase != Phase::kPaused) return;  // in a slot: act() does it
  if (verdict.decision == Decision::kContinue) {
    ledger.rest(verdict.trial, Phase::kReady, ledger.entry(verdict.trial).state);
    queue.push(verdict.trial);
  } else {
    finish(verdict.trial, State::kPruned, "");
  }
}

void Driver::Impl::finish(int draw, State state, const std::string& reason) {
  ledger.finish(draw, state, reason, round);
  laggards.erase(draw);
  const trials::Trial& trial = ledger.trial(draw);
  if (state != State::kComplete) keeper.give_up(draw, trial.number, state, page);
  keeper.forget(trial.number, page);
  page.changes.states.push_back(
      {trial.number, state, trial.value, reason, seams.clock.utc(), trial.ended_round, trial.others});
  page.events.emplace_back(TrialEnded{trial.number, state, trial.value, reason, trial.others});
}

// A round is told when the slots that it emptied are filled again.
void Driver::Impl::turn_page() {
  if (std::exchange(told_round, round) != round) page.events.emplace_back(status());
  recorder.add(std::exchange(page, {}));
}

Status Driver::Impl::status() {
  Status s;
  s.study = config.study;
  s.objectives = config.objectives;
  s.round = round;
  if (ledger.cap() != kEndless) s.planned = ledger.cap();
  s.complete = ledger.count(State::kComplete);
  s.pruned = ledger.count(State::kPruned);
  s.failed = ledger.count(State::kFail);
  for (const auto& array : packer.arrays()) {
    if (!array) continue;
    s.arrays.push_back({array->device(), array->partition(), array->width(), array->occupied()});
    s.running += array->occupied();
  }
  s.waiting = ledger.count(State::kRunning) - s.running;
  s.epochs = ledger.epochs();
  s.epochs_left = ledger.epochs_left();
  s.rate = rate.rate();
  s.seconds = seams.clock.seconds() - began;
  s.best = ledger.best();
  s.front = ledger.front();
  return s;
}

}  // namespace hfta::engine
