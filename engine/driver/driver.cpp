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

Driver::Driver(const StudyConfig& config, const DriverDependencies& seams)
    : impl_(std::make_unique<Impl>(config, seams)) {}
Driver::~Driver() = default;

// A process that takes a study over removes files that a suspended holder still uses. The holder's next file operation
// then fails with "No such file", although the storage is not at fault.
Outcome Driver::run() {
  try {
    return impl_->run();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kStorage) impl_->recorder.check_held();
    throw;
  }
}

Driver::Impl::Impl(const StudyConfig& study_config, const DriverDependencies& all)
    : config(study_config),
      clock(all.clock),
      seams(with_clock(all, clock)),
      recorder({all.store, all.states, all.events, clock, all.faults, all.stop, all.record_beside}, config.study),
      ledger(config, find_study(all.store, config.study).run_caps, prior_of(find_study(all.store, config.study))),
      queue(ledger),
      keeper(all.states, config,
             [this] {
               recorder.add(std::exchange(page, {}));
               recorder.flush();
             }),
      packer(all.trainers, {config.width, config.refill}, next_array(all.store, config.study), ledger, queue, keeper,
             clock,
             {[this](int most, std::optional<int> like) { return draw(most, like); },
              [this](int draw) { return enter(draw); },
              [this](int draw, const std::string& reason) { give_up(draw, reason); },
              [this](const std::string& line) { page.events.emplace_back(Note{line}); }, [this] { return halted(); },
              [this] { start_ready(); }}),
      devices(all.trainers.size()),
      first_round(next_round(all.store, config.study)),
      round(first_round),
      told_round(first_round),
      began(all.clock.seconds()),
      spent_before(find_study(all.store, config.study).progress.seconds) {}

// Busy devices use objects that are about to be destroyed.
Driver::Impl::~Impl() {
  aborting = true;
  while (any_busy()) (void)seams.workers.wait();
}

Outcome Driver::Impl::run() {
  go_on();
  rate.add(seams.clock.seconds(), ledger.epochs());
  for (;;) {
    if (catching_up() && laggards.empty()) end_catching_up();
    see_whether_it_ends();
    if (!halted()) {
      if (!catching_up()) take_enqueued();
      launch();
      enter_ahead();
    }
    turn_page();
    if (!any_busy()) break;
    take(seams.workers.wait());
  }
  end();
  Outcome outcome;
  outcome.stopped_by = ledger.finished() || has_ended ? 0 : seams.stop.load();
  outcome.ended_by = ended_by;
  outcome.any_complete = !ledger.best_trials().empty();
  outcome.rounds = round - first_round;
  outcome.seconds = seams.clock.seconds() - began;
  return outcome;
}

void Driver::Impl::end() {
  if (ledger.finished()) {
    test_best();
  } else if (!halted()) {
    throw Error(ErrorKind::kInternal, "driver: the scheduler made no decision for trials that are not finished");
  } else {
    std::vector<std::size_t> all(devices.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    save(all);
    if (has_ended) test_best();
  }
  page.changes.progress = storage::Progress{spent(), ended_by};
  recorder.add(std::exchange(page, {}));
  recorder.flush();
}

// Loads the study from the store into this run.
void Driver::Impl::go_on() {
  ledger.restore(seams.store);
  for (int draw = 0; draw < ledger.drawn(); ++draw) {
    if (is_whole(draw)) ledger.assign(draw, config.partition(ledger.params(draw)));
  }
  keeper.begin(ledger);
  (void)copy_trials(ledger.take_copies_due(), nullptr);
  recall();
  std::vector<std::string> labels;
  for (const Trainer* trainer : seams.trainers) labels.push_back(trainer->device_facts().name);
  left = arrays_left(seams.store, config.study, ledger, labels);
  if (!ledger.learns() || !begin_catching_up()) reopen_arrays();
}

// Opens arrays as the stopped run left them; every other trial goes to the queue.
void Driver::Impl::reopen_arrays() {
  std::set<int> seated;
  for (LeftArray& array : left) {
    // Only a trial that resumes exactly where it stopped keeps its slot; the others have to catch up first.
    std::erase_if(array.trials, [&](const std::pair<int, int>& place) {
      TrialRecord& entry = ledger.entry(place.second);
      if (entry.phase != Phase::kReady || entry.decision != Decision::kContinue) return true;
      if (!entry.failure.empty()) return true;
      if (entry.partition != array.partition) return true;  // it goes on from a copy
      ledger.rest(place.second, Phase::kReady, keeper.restore(entry, ledger.trial(place.second).number));
      return !entry.state || entry.trained != entry.recorded;
    });
    for (const auto& [slot, draw] : array.trials) seated.insert(draw);
  }
  for (int draw = 0; draw < ledger.drawn(); ++draw) {
    const TrialRecord& entry = ledger.entry(draw);
    if (entry.phase != Phase::kDone && !entry.failure.empty()) {
      finish(draw, State::kFail, entry.failure);
      continue;
    }
    if (entry.phase != Phase::kReady || seated.contains(draw)) continue;
    if (is_hopeless(draw)) {
      give_up(draw, ledger.trial(ledger.repetitions().first_of(draw)).reason);
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
      packer.reopen(array.device, array.id, array.partition, array.width, array.trials);
    } catch (const Error&) {
      recover(array.device, std::current_exception());
    }
  }
}

// Arrays run as the study's earlier ones did on that device, so that resumed trials keep every bit; on a new device as
// the latest one on any.
void Driver::Impl::recall() {
  std::map<std::string, std::string> latest;                                    // by partition
  std::map<std::pair<std::string, std::string>, std::string> latest_on_device;  // by partition and device
  for (const storage::ArrayRecord& array : seams.store.arrays(config.study)) {
    latest[array.partition] = array.choices_json;
    latest_on_device[{array.partition, array.device}] = array.choices_json;
  }
  std::map<std::string, int> example;  // a draw of each
  for (int draw = 0; draw < ledger.drawn(); ++draw) {
    if (is_whole(draw)) example.emplace(ledger.entry(draw).partition, draw);
  }
  std::set<std::string> told;
  for (const auto& [partition, choices] : latest) {
    if (!example.contains(partition)) continue;
    for (Trainer* trainer : seams.trainers) {
      trainer->check(ledger.params(example[partition]));  // what is compared has to be known first
      const auto own = latest_on_device.find({partition, trainer->device_facts().name});
      const std::string line = trainer->recall(partition, own != latest_on_device.end() ? own->second : choices);
      if (!line.empty() && told.insert(line).second) page.events.emplace_back(Note{line});
    }
  }
}

// A method that learns draws by what is in the store: its draws enter at once, behind the results that they follow
// from.
bool Driver::Impl::draw(int most, std::optional<int> like) {
  if (catching_up()) return false;
  const int first = ledger.drawn();
  if (ledger.plan(most, round, like) == 0) return false;
  for (int draw = first; draw < ledger.drawn(); ++draw) {
    if (is_hopeless(draw)) {
      give_up(draw, ledger.trial(ledger.repetitions().first_of(draw)).reason);
      continue;
    }
    ledger.assign(draw, config.partition(ledger.trial(draw).params));
    queue.push(draw);
  }
  if (ledger.learns()) (void)enter(ledger.drawn() - 1);
  return true;
}

bool Driver::Impl::any_busy() const {
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (seams.workers.busy(i)) return true;
  }
  return false;
}

// While trials catch up, the store gets nothing new, but time passes. Epochs and the target wait: some trials may end
// only when all have caught up.
void Driver::Impl::see_whether_it_ends() {
  if (catching_up() && !is_out_of_time(config, spent())) return;
  if (has_ended || ledger.finished() || !ends_early(config)) return;
  ended_by = end_of(config, {spent(), ledger.epochs(), ledger.best_value()});
  has_ended = !ended_by.empty();
}

// Of the epochs that the budget leaves, the earliest draws train one each. False: there is none for this array.
bool Driver::Impl::trim_to_budget(OpenArray& array, std::size_t device) {
  if (!config.budget.epochs || catching_up()) return true;
  std::int64_t unspent = *config.budget.epochs - ledger.epochs();
  const auto is_new = [this](int draw) {
    return draw != OpenArray::kEmpty && ledger.entry(draw).trained >= ledger.entry(draw).recorded;
  };
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (i == device || !(devices[i].ready || seams.workers.busy(i))) continue;
    for (int slot = 0; slot < packer.arrays()[i]->width(); ++slot) unspent -= is_new(packer.arrays()[i]->draw_in(slot));
  }
  std::map<int, int> slots;  // by draw
  for (int slot = 0; slot < array.width(); ++slot) {
    if (is_new(array.draw_in(slot))) slots.emplace(array.draw_in(slot), slot);
  }
  for (; static_cast<std::int64_t>(slots.size()) > std::max<std::int64_t>(unspent, 0);
       slots.erase(std::prev(slots.end()))) {
    const auto [draw, slot] = *slots.rbegin();
    ledger.rest(draw, Phase::kReady, array.extract(slot));
    array.clear(slot);
    queue.push(draw);
  }
  return array.occupied() > 0;
}

void Driver::Impl::take(const DeviceWorkers::Ended& ended) {
  if (ended.error) return recover(ended.worker, ended.error);
  seams.faults.reach("epoch-ended");
  for (const int draw : packer.arrays()[ended.worker]->draws()) ledger.entry(draw).changed = true;
  Device& device = devices[ended.worker];
  if (device.change_took > 0) device.change_cost = device.change_took;
  device.changes_took += device.change_took;
  const double seconds = packer.timed(ended.worker, ended.seconds - device.change_took, device.reports.has_value());
  if (device.reports) end_round(ended.worker, seconds);
  save_if_due(ended.worker);
  spill();
}

void Driver::Impl::recover(std::size_t device, const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    devices[device].ready = false;
    if (e.kind() == ErrorKind::kMemory && packer.arrays()[device]) {
      devices[device].borrows &= packer.arrays()[device]->lent() == 0;
      packer.run_out_of_memory(device, e.what());
      return;
    }
    if (e.kind() != ErrorKind::kDevice) throw;
    packer.retire(device);
    devices[device].failed = true;
    if (std::all_of(devices.begin(), devices.end(), [](const Device& d) { return d.failed; })) throw;
    page.events.emplace_back(Note{fmt::format("{}; its trials go on on the other devices", e.what())});
  }
}

Trainer& Driver::Impl::any_trainer() const {
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (!devices[i].failed) return *seams.trainers[i];
  }
  return *seams.trainers.front();
}

// Search never sees these numbers: they are taken once, when everything is decided, in an array of one slot so that
// they do not depend on widths.
void Driver::Impl::test_best() {
  for (const trials::Trial* best : ledger.best_trials()) {
    if (best->test_metrics.empty() && !test(*best)) return;
  }
}

// False: there are no test data.
bool Driver::Impl::test(const trials::Trial& best) {
  const std::optional<SlotState> state = keeper.finished_state(best.number);
  if (!state) {
    page.events.emplace_back(
        Note{fmt::format("trial {} is {}, but its weights are not on disk: no test metrics", best.number,
                         config.has_several_objectives() ? "on the front" : "the best")});
    return true;
  }
  const std::unique_ptr<TrainerArray> array = any_trainer().open(trials::latest_params(best), 1, 1, never);
  array->insert(0, best.number, trials::latest_params(best), *state);
  std::map<std::string, double> metrics = array->test(0);
  if (metrics.empty()) return false;
  page.events.emplace_back(Tested{best.number, metrics});
  page.changes.test_metrics[best.number] = std::move(metrics);
  return true;
}

}  // namespace hfta::engine
