#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "engine/driver/driver_impl.hpp"
#include "engine/driver/left_arrays.hpp"
#include "engine/driver/study.hpp"

namespace hfta::engine {
namespace {

using search::Decision;
using trials::State;

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
  return {all.store, all.trainers, all.workers,       clock,           all.states, all.events,
          all.stop,  all.faults,   all.record_beside, all.state_memory};
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
      writer({all.store, all.states, all.events, clock, all.faults, all.stop, all.record_beside}, config.study),
      table(config, study.run_caps, prior_of(study)),
      queue(table),
      checkpoints(all.states, config,
                  [this] {
                    writer.add(std::exchange(batch, {}));
                    writer.flush();
                  }),
      array_scheduler(all.trainers, {config.width, config.refill}, next_array(all.store, config.study), table, queue,
                      checkpoints, clock,
                      {[this](int most, std::optional<int> like) { return draw(most, like); },
                       [this](int draw) { return enter(draw); },
                       [this](int draw, const std::string& reason) { give_up(draw, reason); },
                       [this](const std::string& line) { batch.events.emplace_back(Note{line}); },
                       [this] { return halted(); }, [this] { start_ready(); }}),
      devices(all.trainers.size()),
      first_round(next_round(all.store, config.study)),
      round(first_round),
      told_round(first_round),
      began(all.clock.seconds()),
      spent_before(study.progress.seconds) {}

// Busy devices use objects that are about to be destroyed.
Driver::Impl::~Impl() {
  aborting = true;
  while (any_busy()) (void)dependencies.workers.wait();
}

Outcome Driver::Impl::run() {
  go_on();
  rate.add(dependencies.clock.seconds(), table.epochs());
  for (;;) {
    if (catching_up() && laggards.empty()) end_catching_up();
    see_whether_it_ends();
    if (!halted()) {
      if (!catching_up()) take_enqueued();
      launch();
      enter_ahead();
    }
    flush_batch();
    if (!any_busy()) break;
    take(dependencies.workers.wait());
  }
  end();
  Outcome outcome;
  outcome.stopped_by = table.finished() || has_ended ? 0 : dependencies.stop.load();
  outcome.ended_by = ended_by;
  outcome.any_complete = !table.best_trials().empty();
  outcome.rounds = round - first_round;
  outcome.seconds = dependencies.clock.seconds() - began;
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
    save(all);
    if (has_ended) test_best();
  }
  batch.changes.progress = storage::Progress{spent(), ended_by};
  writer.add(std::exchange(batch, {}));
  writer.flush();
}

// Loads the study from the store into this run.
void Driver::Impl::go_on() {
  table.restore(dependencies.store);
  for (int draw = 0; draw < table.drawn(); ++draw) {
    if (is_whole(draw)) table.assign(draw, config.partition(table.params(draw)));
  }
  checkpoints.begin(table);
  (void)copy_trials(table.take_copies_due(), nullptr);
  recall();
  std::vector<std::string> labels;
  for (const Trainer* trainer : dependencies.trainers) labels.push_back(trainer->device_facts().name);
  left = arrays_left(dependencies.store, config.study, table, labels);
  if (!table.learns() || !begin_catching_up()) reopen_arrays();
}

// Opens arrays as the stopped run left them; every other trial goes to the queue.
void Driver::Impl::reopen_arrays() {
  std::set<int> seated;
  for (LeftArray& array : left) {
    // Only a trial that resumes exactly where it stopped keeps its slot; the others have to catch up first.
    std::erase_if(array.trials, [&](const std::pair<int, int>& place) {
      TrialRecord& entry = table.entry(place.second);
      if (entry.phase != Phase::kReady || entry.decision != Decision::kContinue) return true;
      if (!entry.failure.empty()) return true;
      if (entry.partition != array.partition) return true;  // it goes on from a copy
      table.rest(place.second, Phase::kReady, checkpoints.restore(entry, table.trial(place.second).number));
      return !entry.state || entry.trained != entry.recorded;
    });
    for (const auto& [slot, draw] : array.trials) seated.insert(draw);
  }
  for (int draw = 0; draw < table.drawn(); ++draw) {
    const TrialRecord& entry = table.entry(draw);
    if (entry.phase != Phase::kDone && !entry.failure.empty()) {
      finish(draw, State::kFail, entry.failure);
      continue;
    }
    if (entry.phase != Phase::kReady || seated.contains(draw)) continue;
    if (is_hopeless(draw)) {
      give_up(draw, table.trial(table.repetitions().first_of(draw)).reason);
    } else if (entry.decision == Decision::kContinue) {
      queue.push(draw);
    } else {
      finish(draw, entry.decision == Decision::kComplete ? State::kComplete : State::kPruned, "");
    }
  }
  const std::vector<LeftArray> arrays = std::exchange(left, {});
  if (halted()) return;
  for (const LeftArray& array : arrays) {
    try {
      array_scheduler.reopen(array.device, array.id, array.partition, array.width, array.trials);
    } catch (const Error&) {
      recover(array.device, std::current_exception());
    }
  }
}

// Makes arrays run as the study's earlier ones did on that device, so that resumed trials keep every bit; on a new
// device they run as the latest one on any device did.
void Driver::Impl::recall() {
  std::map<std::string, std::string> latest;                                    // by partition
  std::map<std::pair<std::string, std::string>, std::string> latest_on_device;  // by partition and device
  for (const storage::ArrayRecord& array : dependencies.store.arrays(config.study)) {
    latest[array.partition] = array.choices_json;
    latest_on_device[{array.partition, array.device}] = array.choices_json;
  }
  std::map<std::string, int> example;  // a draw of each partition
  for (int draw = 0; draw < table.drawn(); ++draw) {
    if (is_whole(draw)) example.emplace(table.entry(draw).partition, draw);
  }
  std::set<std::string> told;
  for (const auto& [partition, choices] : latest) {
    if (!example.contains(partition)) continue;
    for (Trainer* trainer : dependencies.trainers) {
      trainer->check(table.params(example[partition]));  // recall() compares what check() finds
      const auto own = latest_on_device.find({partition, trainer->device_facts().name});
      const std::string line = trainer->recall(partition, own != latest_on_device.end() ? own->second : choices);
      if (!line.empty() && told.insert(line).second) batch.events.emplace_back(Note{line});
    }
  }
}

// Plans trials. A method that learns draws by what is in the store: its draws enter the store at once, after the
// results that they follow from.
bool Driver::Impl::draw(int most, std::optional<int> like) {
  if (catching_up()) return false;
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
  if (table.learns()) (void)enter(table.drawn() - 1);
  return true;
}

bool Driver::Impl::any_busy() const {
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (dependencies.workers.busy(i)) return true;
  }
  return false;
}

// While trials catch up, the store gets nothing new, but time passes. Epochs and the target wait: some trials may end
// only when all have caught up.
void Driver::Impl::see_whether_it_ends() {
  if (catching_up() && !is_out_of_time(config, spent())) return;
  if (has_ended || table.finished() || !ends_early(config)) return;
  ended_by = end_of(config, {spent(), table.epochs(), table.best_value()});
  has_ended = !ended_by.empty();
}

// The earliest draws get the epochs that the budget leaves, one each. False: there is none for this array.
bool Driver::Impl::trim_to_budget(OpenArray& array, std::size_t device) {
  if (!config.budget.epochs || catching_up()) return true;
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
  if (device.change_took > 0) device.change_cost = device.change_took;
  device.changes_took += device.change_took;
  const double seconds =
      array_scheduler.timed(ended.worker, ended.seconds - device.change_took, device.reports.has_value());
  if (device.reports) end_round(ended.worker, seconds);
  save_if_due(ended.worker);
  spill();
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
      devices[device].borrows &= array_scheduler.arrays()[device]->lent() == 0;
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
