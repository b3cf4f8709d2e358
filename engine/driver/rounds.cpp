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
  OpenArray& array = *array_scheduler.arrays()[device];
  const std::vector<SlotReport>& reports = *devices[device].reports;
  if (catching_up.active()) return end_untold_round(array, reports);
  batch.changes.rounds.push_back({round, array.id(), array.width(), array.occupied(), seconds});
  if (auto changed = array.take_changes()) {
    batch.events.emplace_back(ArrayChanged{changed->array, changed->device, changed->partition, changed->width,
                                           changed->chunk, changed->threads});
    batch.changes.arrays.push_back(std::move(*changed));
  }
  for (const SlotReport& report : reports) record(array, report);
  act_on(table.take_verdicts(), &array);
  for (const SlotReport& report : reports) act(array, report.slot);
  failures.clear();
  batch.changes.progress = storage::Progress{budget.spent(), ""};
  ++round;
  rate.add(dependencies.clock.seconds(), table.epochs());
}

void Driver::Impl::end_untold_round(OpenArray& array, const std::vector<SlotReport>& reports) {
  for (const SlotReport& report : reports) {
    const int draw = array.draw_in(report.slot);
    const ReportResult told = table.report(draw, report);
    if (!told.failure.empty()) failures[draw] = told.failure;
    array.follow(report.slot, table);
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
  const int number = table.trial(draw).number;
  const ReportResult told = table.report(draw, report);
  batch.changes.occupancy.push_back({array.id(), round, report.slot, number, report.epoch});
  if (told.recorded) {
    const std::optional<double> intermediate =
        config.has_several_objectives() ? std::nullopt : std::optional(told.value);
    batch.changes.epochs.push_back({number, {report.epoch, report.metrics}, intermediate});
    batch.events.emplace_back(EpochEnded{number, report.epoch, report.metrics, told.value, array.id(), report.slot});
  } else {
    array.follow(report.slot, table);
  }
  if (!told.failure.empty()) failures[draw] = told.failure;
}

void Driver::Impl::act(OpenArray& array, int slot) {
  const int draw = array.draw_in(slot);
  if (draw == OpenArray::kEmpty) return;  // its trial continues from a copy in another array
  TrialRecord& entry = table.entry(draw);
  const auto failure = failures.find(draw);
  if (failure != failures.end()) {
    finish(draw, State::kFail, failure->second);
    array.clear(slot);
    return;
  }
  if (config.select_best && entry.trained == entry.value_epoch) entry.best_state = array.extract(slot);
  if (catching_up.take_out(array, slot)) return;
  switch (entry.decision) {
    case Decision::kContinue:
      return;
    case Decision::kPause:
      table.rest(draw, Phase::kPaused, array.extract(slot));
      break;
    case Decision::kStop:
      finish(draw, State::kPruned, "");
      break;
    case Decision::kComplete: {
      const HeldState weights = config.select_best ? entry.best_state : array.extract(slot);
      if (array.failure()) {  // the weights are lost, and trained again
        entry.due = Decision::kComplete;
        return;
      }
      checkpoints.keep(draw, table.trial(draw).number, entry.values, entry.value_epoch, weights, batch);
      finish(draw, State::kComplete, "");
      break;
    }
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
  const Phase phase = table.entry(verdict.trial).phase;
  if (verdict.decision == Decision::kPause) {
    if (phase != Phase::kReady) return;
    queue.take(verdict.trial);
    table.rest(verdict.trial, Phase::kPaused, table.entry(verdict.trial).state);
    return;
  }
  if (phase != Phase::kPaused) return;  // act() sees to a trial in a slot
  if (verdict.decision == Decision::kContinue) {
    table.rest(verdict.trial, Phase::kReady, table.entry(verdict.trial).state);
    queue.push(verdict.trial);
  } else {
    finish(verdict.trial, State::kPruned, "");
  }
}

void Driver::Impl::finish(int draw, State state, const std::string& reason) {
  table.finish(draw, state, reason, round);
  catching_up.forget(draw);
  const trials::Trial& trial = table.trial(draw);
  if (state != State::kComplete) checkpoints.give_up(draw, trial.number, state, batch);
  checkpoints.forget(trial.number, batch);
  batch.changes.states.push_back(
      {trial.number, state, trial.values, reason, dependencies.clock.utc(), trial.ended_round});
  batch.events.emplace_back(TrialEnded{trial.number, state, trial.values, reason});
}

// Passes the batch to the writer. A round's status is sent when the slots that it emptied are filled again.
void Driver::Impl::flush_batch() {
  if (told_round != round) {
    told_round = round;
    batch.events.emplace_back(status());
  }
  writer.add(std::exchange(batch, {}));
}

Status Driver::Impl::status() {
  Status s;
  s.study = config.study;
  s.objectives = config.objectives;
  s.round = round;
  if (table.cap() != kEndless) s.planned = table.cap();
  s.complete = table.count(State::kComplete);
  s.pruned = table.count(State::kPruned);
  s.failed = table.count(State::kFail);
  for (const auto& array : array_scheduler.arrays()) {
    if (!array) continue;
    s.arrays.push_back({array->device(), array->partition(), array->width(), array->occupied()});
    s.running += array->occupied();
  }
  s.waiting = table.count(State::kRunning) - s.running;
  s.epochs = table.epochs();
  s.epochs_left = table.epochs_left();
  s.rate = rate.rate();
  s.seconds = budget.elapsed();
  s.best = table.best();
  s.front = table.front();
  return s;
}

}  // namespace hfta::engine
