#include "engine/driver/driver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <map>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "engine/driver/keeper.hpp"
#include "engine/driver/ledger.hpp"
#include "engine/driver/left_arrays.hpp"
#include "engine/driver/packer.hpp"
#include "engine/driver/queue.hpp"
#include "engine/driver/recorder.hpp"

namespace hfta::engine {
namespace {

using search::Decision;
using trials::State;

constexpr int kDrawChunk = 256;
constexpr double kTakeShare = 1 / 50.;  // of the time, spent on taking states out of arrays, which training waits for
constexpr double kWriteShare =
    1 / 10.;                            // of the time, spent on writing them beside training: mostly waiting for a disk
constexpr double kShortestSeconds = 1;  // between two times that a device's states are written
constexpr double kLongEpochSeconds = 60;  // an epoch is interrupted for it only where epochs are longer

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

// A device as the run sees it.
struct Device {
  std::optional<std::vector<SlotReport>> reports;  // of the round that has just ended; nullopt: it was paused
  std::optional<double> saved;                     // when its states were written last in this run
  double pause_at = 0;                             // when the epoch at hand is interrupted to write them
  bool failed = false;
};

}  // namespace

struct Driver::Impl {
  Impl(const StudyConfig& study_config, const Seams& all);
  ~Impl();

  Outcome run();
  void go_on();
  void recall();
  bool draw_more();
  void launch();
  void start(std::size_t device);
  [[nodiscard]] bool any_busy() const;
  void take(const Workers::Ended& ended);
  void recover(std::size_t device, const std::exception_ptr& error);
  void end_round(std::size_t device, double seconds);
  void record(const OpenArray& array, const SlotReport& report);
  void act(OpenArray& array, int slot);
  void act_on_paused(const search::Verdict& verdict);
  void finish(int draw, State state, const std::string& reason);
  void turn_page();
  void save(const std::vector<std::size_t>& those);
  void save_if_due(std::size_t device);
  [[nodiscard]] double save_interval() const;
  void spill();
  void end();
  void test_best();
  [[nodiscard]] Trainer& any_trainer() const;
  [[nodiscard]] Status status();

  const StudyConfig& config;
  Seams seams;
  Page page;  // what has happened since the last turn_page()
  Recorder recorder;
  Ledger ledger;
  ReadyQueue queue;
  Keeper keeper;
  Packer packer;
  std::vector<Device> devices;
  std::map<int, std::string> failures;  // by draw, of the round at hand
  RateMeter rate;
  int first_round, round, told_round;
  double began;
  double take_seconds = 0;  // that taking the states out last took
  std::atomic<bool> aborting{false};
};

Driver::Driver(const StudyConfig& config, const Seams& seams) : impl_(std::make_unique<Impl>(config, seams)) {}
Driver::~Driver() = default;
Outcome Driver::run() { return impl_->run(); }

Driver::Impl::Impl(const StudyConfig& study_config, const Seams& all)
    : config(study_config),
      seams(all),
      recorder({all.store, all.running, all.finished, all.progress, all.clock, all.faults, all.record_beside},
               config.study),
      ledger(config, find_study(all.store, config.study).run_caps),
      queue(ledger),
      keeper(all.running, all.finished, config,
             [this] {
               recorder.add(std::exchange(page, {}));
               recorder.flush();
             }),
      packer(
          all.trainers, {config.width, config.refill}, next_array(all.store, config.study), ledger, queue, keeper,
          all.clock,
          {[this] { return draw_more(); },
           [this](int draw, const std::string& reason) { finish(draw, State::kFail, reason); },
           [this](const std::string& line) { page.notes.push_back(line); }, [this] { return seams.stop.load() != 0; }}),
      devices(all.trainers.size()),
      first_round(next_round(all.store, config.study)),
      round(first_round),
      told_round(first_round),
      began(all.clock.seconds()) {}

// Devices at work use what is about to go.
Driver::Impl::~Impl() {
  aborting = true;
  while (any_busy()) (void)seams.workers.wait();
}

Outcome Driver::Impl::run() {
  go_on();
  rate.add(seams.clock.seconds(), ledger.epochs());
  for (;;) {
    if (seams.stop.load() == 0) launch();
    turn_page();
    if (!any_busy()) break;
    take(seams.workers.wait());
  }
  end();
  Outcome outcome;
  outcome.stopped_by = ledger.finished() ? 0 : seams.stop.load();
  outcome.any_complete = trials::best_of(ledger.trials(), config.goal) != nullptr;
  outcome.rounds = round - first_round;
  outcome.seconds = seams.clock.seconds() - began;
  return outcome;
}

void Driver::Impl::end() {
  if (ledger.finished()) {
    test_best();
  } else if (seams.stop.load() == 0) {
    throw Error(ErrorKind::kInternal, "driver: trials are left that no verdict falls due for");
  } else {
    std::vector<std::size_t> all(devices.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    save(all);
  }
  recorder.add(std::exchange(page, {}));
  recorder.flush();
}

// What the store has of the study becomes what this run knows of it.
void Driver::Impl::go_on() {
  ledger.restore(seams.store.trials(config.study), seams.store.draws(config.study));
  for (int draw = 0; draw < ledger.drawn(); ++draw) {
    ledger.assign(draw, any_trainer().partition(ledger.trial(draw).params));
  }
  keeper.begin(ledger);
  recall();
  std::vector<LeftArray> left = arrays_left(seams.store, config.study, ledger);
  if (left.size() > devices.size()) left.resize(devices.size());
  std::set<int> seated;
  for (LeftArray& array : left) {
    // Only what goes on exactly from where it stood keeps its slot; the others have to catch up first.
    std::erase_if(array.trials, [&](const std::pair<int, int>& place) {
      Entry& entry = ledger.entry(place.second);
      if (entry.phase != Phase::kReady || entry.decision != Decision::kContinue) return true;
      ledger.rest(place.second, Phase::kReady, keeper.restore(entry, ledger.trial(place.second).number));
      return !entry.state || entry.trained != entry.recorded;
    });
    for (const auto& [slot, draw] : array.trials) seated.insert(draw);
  }
  for (int draw = 0; draw < ledger.drawn(); ++draw) {
    const Entry& entry = ledger.entry(draw);
    if (entry.phase != Phase::kReady || seated.contains(draw)) continue;
    if (entry.decision == Decision::kContinue) {
      queue.push(draw);
    } else {
      finish(draw, entry.decision == Decision::kComplete ? State::kComplete : State::kPruned, "");
    }
  }
  if (seams.stop.load() != 0) return;
  for (std::size_t i = 0; i < left.size(); ++i) {
    packer.reopen(i, left[i].id, left[i].partition, left[i].width, left[i].trials);
  }
}

// Arrays run as the study's earlier ones did, so that resumed trials keep every bit.
void Driver::Impl::recall() {
  std::map<std::string, std::string> latest;  // by partition
  for (const storage::ArrayRecord& array : seams.store.arrays(config.study)) {
    latest[array.partition] = array.choices_json;
  }
  std::map<std::string, int> example;  // a draw of each
  for (int draw = 0; draw < ledger.drawn(); ++draw) example.emplace(ledger.entry(draw).partition, draw);
  std::set<std::string> told;
  for (const auto& [partition, choices] : latest) {
    if (!example.contains(partition)) continue;
    for (Trainer* trainer : seams.trainers) {
      trainer->check(ledger.trial(example[partition]).params);  // what is compared has to be known first
      const std::string line = trainer->recall(partition, choices);
      if (!line.empty() && told.insert(line).second) page.notes.push_back(line);
    }
  }
}

bool Driver::Impl::draw_more() {
  std::vector<trials::Params> params = ledger.ask(kDrawChunk);
  if (params.empty()) return false;
  const std::vector<int> numbers = recorder.add_trials(params, seams.clock.utc());
  for (std::size_t i = 0; i < params.size(); ++i) {
    const int draw = ledger.add(numbers.at(i), std::move(params[i]));
    ledger.assign(draw, any_trainer().partition(ledger.trial(draw).params));
    queue.push(draw);
  }
  return true;
}

bool Driver::Impl::any_busy() const {
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (seams.workers.busy(i)) return true;
  }
  return false;
}

// Every device that has nothing to do gets an epoch, if there is one to be had.
void Driver::Impl::launch() {
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].failed || seams.workers.busy(i)) continue;
    try {
      packer.prepare(i, page.changes);
    } catch (const Error&) {
      recover(i, std::current_exception());
      i = static_cast<std::size_t>(-1);  // trials have come back: devices that had nothing to do may have now
      continue;
    }
    if (packer.arrays()[i]) start(i);
  }
}

void Driver::Impl::start(std::size_t device) {
  Device& d = devices[device];
  OpenArray* array = packer.arrays()[device].get();
  d.reports.reset();
  d.pause_at = seams.clock.seconds() + std::max(kLongEpochSeconds, save_interval());
  const Pause pause = [this, &d] {
    return seams.stop.load() != 0 || aborting || recorder.failed() || seams.clock.seconds() >= d.pause_at;
  };
  const std::string place = "epoch-" + array->device();
  seams.workers.start(device, [this, &d, array, pause, place] {
    seams.faults.reach(place);
    d.reports = array->run_epoch(pause);
  });
}

void Driver::Impl::take(const Workers::Ended& ended) {
  if (ended.error) return recover(ended.worker, ended.error);
  seams.faults.reach("epoch-ended");
  OpenArray& array = *packer.arrays()[ended.worker];
  for (int slot = 0; slot < array.width(); ++slot) {
    if (array.draw_in(slot) != OpenArray::kEmpty) ledger.entry(array.draw_in(slot)).changed = true;
  }
  if (devices[ended.worker].reports) end_round(ended.worker, ended.seconds);
  save_if_due(ended.worker);
  spill();
}

void Driver::Impl::recover(std::size_t device, const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::kMemory && packer.arrays()[device]) {
      packer.run_out_of_memory(device, e.what());
      return;
    }
    if (e.kind() != ErrorKind::kDevice) throw;
    packer.retire(device);
    devices[device].failed = true;
    if (std::all_of(devices.begin(), devices.end(), [](const Device& d) { return d.failed; })) throw;
    page.notes.push_back(fmt::format("{}; its trials go on on the other devices", e.what()));
  }
}

// Reports are taken in order of slot. Slots are decided only when every report is in: a verdict may call back a trial
// that has just been paused, which then keeps its slot.
void Driver::Impl::end_round(std::size_t device, double seconds) {
  OpenArray& array = *packer.arrays()[device];
  const std::vector<SlotReport>& reports = *devices[device].reports;
  page.changes.rounds.push_back({round, array.id(), array.width(), array.occupied(), seconds});
  if (auto changed = array.take_changes()) page.changes.arrays.push_back(std::move(*changed));
  for (const SlotReport& report : reports) record(array, report);
  for (const search::Verdict& verdict : ledger.take_verdicts()) act_on_paused(verdict);
  for (const SlotReport& report : reports) act(array, report.slot);
  failures.clear();
  ++round;
  rate.add(seams.clock.seconds(), ledger.epochs());
}

void Driver::Impl::record(const OpenArray& array, const SlotReport& report) {
  const int draw = array.draw_in(report.slot);
  if (draw == OpenArray::kEmpty) {
    throw Error(ErrorKind::kInternal,
                fmt::format("driver: slot {} is empty, and reported epoch {}", report.slot, report.epoch));
  }
  const int number = ledger.trial(draw).number;
  const Told told = ledger.report(draw, report);
  page.changes.occupancy.push_back({array.id(), round, report.slot, number, report.epoch});
  if (told.recorded) page.changes.epochs.push_back({number, {report.epoch, report.metrics}, told.value});
  if (!told.failure.empty()) failures[draw] = told.failure;
}

void Driver::Impl::act(OpenArray& array, int slot) {
  const int draw = array.draw_in(slot);
  Entry& entry = ledger.entry(draw);
  const auto failure = failures.find(draw);
  if (failure != failures.end()) {
    finish(draw, State::kFail, failure->second);
    array.clear(slot);
    return;
  }
  if (config.select_best && entry.trained == entry.value_epoch) entry.best_state = array.extract(slot);
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
      keeper.keep(ledger.trial(draw).number, *entry.value, entry.value_epoch,
                  config.select_best ? entry.best_state : array.extract(slot), page);
      finish(draw, State::kComplete, "");
      break;
  }
  array.clear(slot);
}

void Driver::Impl::act_on_paused(const search::Verdict& verdict) {
  if (ledger.entry(verdict.trial).phase != Phase::kPaused) return;  // in a slot: act() does it
  if (verdict.decision == Decision::kContinue) {
    ledger.rest(verdict.trial, Phase::kReady, ledger.entry(verdict.trial).state);
    queue.push(verdict.trial);
  } else {
    finish(verdict.trial, State::kPruned, "");
  }
}

void Driver::Impl::finish(int draw, State state, const std::string& reason) {
  ledger.finish(draw, state, reason);
  const trials::Trial& trial = ledger.trial(draw);
  keeper.forget(trial.number, page);
  page.changes.states.push_back({trial.number, state, trial.value, reason, seams.clock.utc()});
}

// A round is told when the slots that it emptied are filled again.
void Driver::Impl::turn_page() {
  if (std::exchange(told_round, round) != round) page.statuses.push_back(status());
  recorder.add(std::exchange(page, {}));
}

double Driver::Impl::save_interval() const {
  return std::max({kShortestSeconds, take_seconds / kTakeShare, recorder.saving_seconds() / kWriteShare});
}

// The first round of a run is saved at once: a study that is killed again and again gets on.
void Driver::Impl::save_if_due(std::size_t device) {
  const std::optional<double>& saved = devices[device].saved;
  const bool due = !saved || seams.clock.seconds() - *saved >= save_interval();
  if (due && !recorder.saving()) save({device});
}

// States of trials that wait, and of those in the slots of these devices, which must not be at work.
void Driver::Impl::save(const std::vector<std::size_t>& those) {
  const double start = seams.clock.seconds();
  for (const int draw : ledger.holding()) {
    keeper.save(ledger.entry(draw), ledger.trial(draw).number, ledger.entry(draw).state, page);
  }
  for (const std::size_t device : those) {
    const std::unique_ptr<OpenArray>& array = packer.arrays()[device];
    for (int slot = 0; array && slot < array->width(); ++slot) {
      const int draw = array->draw_in(slot);
      if (draw == OpenArray::kEmpty || !ledger.entry(draw).changed) continue;
      keeper.save(ledger.entry(draw), ledger.trial(draw).number, array->extract(slot), page);
    }
    devices[device].saved = seams.clock.seconds();
  }
  take_seconds = seams.clock.seconds() - start;
}

// Those that wait longest go to disk: the latest draws come last in every queue.
void Driver::Impl::spill() {
  std::size_t bytes = 0;
  for (const int draw : ledger.holding()) {
    const Entry& entry = ledger.entry(draw);
    bytes += entry.state->size() + (entry.best_state ? entry.best_state->size() : 0);
  }
  while (bytes > seams.state_memory && !ledger.holding().empty()) {
    const int draw = *ledger.holding().rbegin();
    Entry& entry = ledger.entry(draw);
    bytes -= entry.state->size() + (entry.best_state ? entry.best_state->size() : 0);
    keeper.save(entry, ledger.trial(draw).number, entry.state, page);
    entry.best_state.reset();
    ledger.release(draw);
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
  const trials::Trial* best = trials::best_of(ledger.trials(), config.goal);
  if (best == nullptr || !best->test_metrics.empty()) return;
  const std::optional<SlotState> state = keeper.finished_state(best->number);
  if (!state) {
    page.notes.push_back(
        fmt::format("trial {} is the best, but its weights are not on disk: no test metrics", best->number));
    return;
  }
  const std::unique_ptr<TrainerArray> array = any_trainer().open(best->params, 1, 1, never);
  array->insert(0, best->number, best->params, *state);
  std::map<std::string, double> metrics = array->test(0);
  if (!metrics.empty()) page.changes.test_metrics[best->number] = std::move(metrics);
}

Status Driver::Impl::status() {
  Status s;
  s.study = config.study;
  s.metric = config.metric;
  s.round = round;
  s.planned = ledger.cap();
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
  return s;
}

}  // namespace hfta::engine
