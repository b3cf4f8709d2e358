#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "engine/driver/best_tester.hpp"
#include "engine/driver/driver_impl.hpp"
#include "engine/driver/study/study.hpp"

namespace hfta::engine {
namespace {

storage::StudyRecord find_study(storage::Store& store, const std::string& name) {
  std::optional<storage::StudyRecord> record = store.find(name);
  if (!record) throw Error(ErrorKind::kInternal, fmt::format("driver: found no study '{}' in the store", name));
  return std::move(*record);
}

int next_round(storage::Store& store, const std::string& study) {
  int next = 0;
  for (const storage::RoundRecord& round : store.rounds(study)) next = std::max(next, round.round + 1);
  return next;
}

int next_array(storage::Store& store, const std::string& study) {
  int next = 0;
  for (const storage::ArrayRecord& array : store.arrays(study)) next = std::max(next, array.array + 1);
  return next;
}

DriverDependencies with_clock(const DriverDependencies& all, Clock& clock) {
  return {.store = all.store,
          .trainers = all.trainers,
          .workers = all.workers,
          .clock = clock,
          .states = all.states,
          .events = all.events,
          .stop = all.stop,
          .faults = all.faults,
          .record_beside = all.record_beside,
          .state_memory = all.state_memory};
}

}  // namespace

Driver::Driver(const StudyConfig& config, const DriverDependencies& dependencies)
    : impl_(std::make_unique<Impl>(config, dependencies, find_study(dependencies.store, config.study))) {}
Driver::~Driver() = default;

// A process that takes a study over removes files that a suspended holder still uses. The holder's next file operation
// then fails with "No such file", although the storage is not at fault.
Outcome Driver::run() {
  try {
    return impl_->run();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kStorage) impl_->writer.check_held();
    throw;
  }
}

Driver::Impl::Impl(const StudyConfig& study_config, const DriverDependencies& all, const storage::StudyRecord& study)
    : config(study_config),
      clock(all.clock),
      dependencies(with_clock(all, clock)),
      writer({.store = all.store,
              .states = all.states,
              .events = all.events,
              .clock = clock,
              .faults = all.faults,
              .stop = all.stop,
              .beside = all.record_beside},
             config.study),
      table(config, study.run_caps, prior_of(study), [this] { return slots(); }),
      queue(table),
      checkpoints(all.states, config,
                  [this] {
                    writer.add(std::exchange(batch, {}));
                    writer.flush();
                  }),
      numbering(table, writer, clock, all.stop, batch, [this] { return can_train(); }),
      array_scheduler(all.trainers, {config.width, config.refill}, next_array(all.store, config.study), table, queue,
                      checkpoints, clock,
                      {.draw = [this](int most, std::optional<int> like) { return draw(most, like); },
                       .enter = [this](int draw) { return numbering.enter(draw); },
                       .fail = [this](int draw, const std::string& reason) { give_up(draw, reason); },
                       .note = [this](const std::string& line) { batch.events.emplace_back(Note{line}); },
                       .pause = [this] { return halted(); },
                       .opens = [this] { start_ready(); }}),
      saver(table, checkpoints, writer, array_scheduler.arrays(), clock, all.state_memory, batch),
      catching_up(table, checkpoints, queue, saver),
      devices(all.trainers.size()),
      thread_changes(all.trainers.size()),
      first_round(next_round(all.store, config.study)),
      round(first_round),
      told_round(first_round),
      budget(config, clock, study.progress.seconds) {}

// Busy devices use objects that are about to be destroyed.
Driver::Impl::~Impl() {
  aborting = true;
  while (any_busy()) (void)dependencies.workers.wait();
}

Outcome Driver::Impl::run() {
  go_on();
  rate.add(dependencies.clock.seconds(), table.epochs());
  for (;;) {
    if (catching_up.active() && catching_up.done()) end_catching_up();
    budget.look(table, catching_up.active());
    if (!halted()) {
      if (!catching_up.active()) take_enqueued();
      launch();
      numbering.enter_ahead(rate.rate());
    }
    flush_batch();
    if (!any_busy()) break;
    take(dependencies.workers.wait());
  }
  end();
  Outcome outcome;
  outcome.stopped_by = table.finished() || budget.ended() ? 0 : dependencies.stop.load();
  outcome.ended_by = budget.why();
  outcome.any_complete = !table.best_trials().empty();
  outcome.rounds = round - first_round;
  outcome.seconds = budget.elapsed();
  return outcome;
}

void Driver::Impl::end() {
  if (table.finished()) {
    test_best();
  } else if (!halted()) {
    throw Error(ErrorKind::kInternal, "driver: the scheduler made no decision for trials that are not finished");
  } else {
    std::vector<std::size_t> all(devices.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    saver.save(all);
    if (budget.ended()) test_best();
  }
  batch.changes.progress = storage::Progress{budget.spent(), budget.why()};
  writer.add(std::exchange(batch, {}));
  writer.flush();
}

void Driver::Impl::test_best() {
  BestTester tester(config, table, checkpoints,
                    {dependencies.trainers, [this](std::size_t device) { return devices.at(device).failed; },
                     [this](std::size_t device, const std::exception_ptr& error) { recover(device, error); }},
                    batch);
  tester.test();
}

// Plans trials. A method that learns draws by what is in the store: its draws enter the store at once, after the
// results that they follow from.
bool Driver::Impl::draw(int most, std::optional<int> like) {
  if (catching_up.active()) return false;
  const int first = table.drawn();
  if (table.plan(most, round, like) == 0) return false;
  for (int draw = first; draw < table.drawn(); ++draw) {
    if (is_hopeless(draw)) {
      give_up(draw, table.trial(table.repetitions().first_of(draw)).reason);
      continue;
    }
    table.assign(draw, config.partition(table.trial(draw).params));
    queue.push(draw);
  }
  if (table.learns()) (void)numbering.enter(table.drawn() - 1);
  return true;
}

bool Driver::Impl::any_busy() const {
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (dependencies.workers.busy(i)) return true;
  }
  return false;
}

int Driver::Impl::slots() {
  int first = 0;
  while (first < table.drawn() && !is_whole(first)) ++first;
  if (first == table.drawn()) return 1;
  const std::string partition = config.partition(table.params(first));
  int all = 0;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (!devices[i].failed) all += array_scheduler.most_slots(i, partition, first);
  }
  return all;
}

// The earliest draws get the epochs that the budget leaves, one each. False: there is none for this array.
bool Driver::Impl::trim_to_budget(OpenArray& array, std::size_t device) {
  if (!config.budget.epochs || catching_up.active()) return true;
  std::int64_t unspent = *config.budget.epochs - table.epochs();
  const auto is_new = [this](int draw) {
    return draw != OpenArray::kEmpty && table.entry(draw).trained >= table.entry(draw).recorded;
  };
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (i == device || !(devices[i].ready || dependencies.workers.busy(i))) continue;
    for (int slot = 0; slot < array_scheduler.arrays()[i]->width(); ++slot)
      unspent -= is_new(array_scheduler.arrays()[i]->draw_in(slot));
  }
  std::map<int, int> slots;  // by draw
  for (int slot = 0; slot < array.width(); ++slot) {
    if (is_new(array.draw_in(slot))) slots.emplace(array.draw_in(slot), slot);
  }
  for (; static_cast<std::int64_t>(slots.size()) > std::max<std::int64_t>(unspent, 0);
       slots.erase(std::prev(slots.end()))) {
    const auto [draw, slot] = *slots.rbegin();
    table.rest(draw, Phase::kReady, array.extract(slot));
    array.clear(slot);
    queue.push(draw);
  }
  return array.occupied() > 0;
}

void Driver::Impl::take(const DeviceWorkers::Ended& ended) {
  if (ended.error) return recover(ended.worker, ended.error);
  dependencies.faults.reach("epoch-ended");
  for (const int draw : array_scheduler.arrays()[ended.worker]->draws()) table.entry(draw).changed = true;
  Device& device = devices[ended.worker];
  thread_changes.add(ended.worker, device.change_took);
  const double seconds =
      array_scheduler.timed(ended.worker, ended.seconds - device.change_took, device.reports.has_value());
  if (device.reports) end_round(ended.worker, seconds);
  saver.save_if_due(ended.worker);
  saver.spill();
  recover_if_failed(ended.worker);
}

// Recovers from an array that failed while its trials were moved.
void Driver::Impl::recover_if_failed(std::size_t device) {
  const std::unique_ptr<OpenArray>& array = array_scheduler.arrays()[device];
  if (array && array->failure()) recover(device, array->failure());
}

void Driver::Impl::recover(std::size_t device, const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    devices[device].ready = false;
    if (e.kind() == ErrorKind::kMemory && array_scheduler.arrays()[device]) {
      if (array_scheduler.arrays()[device]->lent() != 0) thread_changes.forbid(device);
      array_scheduler.run_out_of_memory(device, e.what());
      return;
    }
    if (e.kind() != ErrorKind::kDevice) throw;
    array_scheduler.retire(device);
    devices[device].failed = true;
    if (std::all_of(devices.begin(), devices.end(), [](const Device& d) { return d.failed; })) throw;
    batch.events.emplace_back(Note{fmt::format("{}; its trials go on on the other devices", e.what())});
  }
}

}  // namespace hfta::engine
