#include "engine/driver/driver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "engine/driver/keeper.hpp"
#include "engine/driver/ledger.hpp"
#include "engine/driver/left_arrays.hpp"
#include "engine/driver/packer.hpp"
#include "engine/driver/queue.hpp"
#include "engine/driver/workers.hpp"

namespace hfta::engine {
namespace {

using search::Decision;
using trials::State;

constexpr int kDrawChunk = 256;
constexpr double kCheckpointSeconds = 10;     // a killed run loses little more than this of its training
constexpr double kCheckpointShare = 1 / 50.;  // and spends at most this much on it

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

}  // namespace

struct Driver::Impl {
  Impl(const StudyConfig& study_config, const Seams& all)
      : config(study_config),
        seams(all),
        ledger(config, find_study(all.store, config.study).run_caps),
        queue(ledger),
        keeper(all.running, all.finished, config),
        packer(all.trainers, config.width, next_array(all.store, config.study), ledger, queue, keeper, all.clock,
               [this] { return draw_more(); }),
        workers(all.trainers.size()),
        first_round(next_round(all.store, config.study)),
        round(first_round),
        began(all.clock.seconds()),
        last_checkpoint(began) {}

  Outcome run();
  void go_on();
  bool draw_more();
  void train_round();
  void record(const OpenArray& array, const SlotReport& report);
  void act(OpenArray& array, int slot);
  void act_on_paused(const search::Verdict& verdict);
  void finish(int draw, State state, const std::string& reason);
  void complete(int draw, const SlotState& state);
  void commit();
  void save_states();
  void save_states_if_due();
  void test_best();
  [[nodiscard]] Status status();

  const StudyConfig& config;
  Seams seams;
  Ledger ledger;
  ReadyQueue queue;
  Keeper keeper;
  Packer packer;
  Workers workers;
  storage::Changes changes;
  std::map<int, std::string> failures;  // by draw, of this round
  RateMeter rate;
  int first_round, round;
  double began, last_checkpoint;
  double checkpoint_cost = 0;
};

Driver::Driver(const StudyConfig& config, const Seams& seams) : impl_(std::make_unique<Impl>(config, seams)) {}
Driver::~Driver() = default;
Outcome Driver::run() { return impl_->run(); }

Outcome Driver::Impl::run() {
  go_on();
  rate.add(seams.clock.seconds(), ledger.epochs());
  for (;;) {
    if (seams.stop.load() != 0) {
      commit();
      save_states();
      if (round > first_round) seams.progress.round(status());
      break;
    }
    packer.prepare(changes);
    if (round > first_round) seams.progress.round(status());  // slots as they were refilled
    if (!packer.any_open()) break;
    train_round();
    commit();
    save_states_if_due();
    rate.add(seams.clock.seconds(), ledger.epochs());
  }
  Outcome outcome;
  outcome.stopped_by = seams.stop.load();
  if (outcome.stopped_by == 0 || ledger.finished()) {
    if (!ledger.finished()) throw Error(ErrorKind::kInternal, "driver: trials are left that no verdict falls due for");
    commit();
    test_best();
    outcome.stopped_by = 0;
  }
  outcome.any_complete = trials::best_of(ledger.trials(), config.goal) != nullptr;
  outcome.rounds = round - first_round;
  outcome.seconds = seams.clock.seconds() - began;
  return outcome;
}

// What the store has of the study becomes what this run knows of it.
void Driver::Impl::go_on() {
  ledger.restore(seams.store.trials(config.study), seams.store.draws(config.study));
  keeper.begin(ledger);
  std::vector<LeftArray> left = arrays_left(seams.store, config.study, ledger);
  std::set<int> seated;
  for (LeftArray& array : left) {
    // Only what goes on exactly from where it stood keeps its slot; the others have to catch up first.
    std::erase_if(array.trials, [&](const std::pair<int, int>& place) {
      Entry& entry = ledger.entry(place.second);
      if (entry.phase != Phase::kReady || entry.decision != Decision::kContinue) return true;
      keeper.restore(entry, ledger.trial(place.second).number);
      return !entry.state || entry.trained != entry.recorded;
    });
    for (const auto& [slot, draw] : array.trials) seated.insert(draw);
  }
  for (int draw = 0; draw < ledger.drawn(); ++draw) {
    Entry& entry = ledger.entry(draw);
    entry.partition = seams.trainers.front()->partition(ledger.trial(draw).params);
    if (entry.phase != Phase::kReady || seated.contains(draw)) continue;
    if (entry.decision == Decision::kContinue) {
      queue.push(draw);
    } else {
      finish(draw, entry.decision == Decision::kComplete ? State::kComplete : State::kPruned, "");
    }
  }
  if (seams.stop.load() != 0) return;
  for (const LeftArray& array : left) packer.reopen(array.id, array.partition, array.width, array.trials);
}

bool Driver::Impl::draw_more() {
  std::vector<trials::Params> params = ledger.ask(kDrawChunk);
  if (params.empty()) return false;
  const std::vector<int> numbers = seams.store.add_trials(config.study, params, seams.clock.utc());
  for (std::size_t i = 0; i < params.size(); ++i) {
    const int draw = ledger.add(numbers.at(i), std::move(params[i]));
    ledger.entry(draw).partition = seams.trainers.front()->partition(ledger.trial(draw).params);
    queue.push(draw);
  }
  return true;
}

// Reports are taken in order of device and slot, whichever device was first. Slots are decided only when every report
// is in: a verdict may call back a trial that has just been paused, which then keeps its slot.
void Driver::Impl::train_round() {
  const auto& arrays = packer.arrays();
  std::vector<std::vector<SlotReport>> reports(arrays.size());
  std::vector<double> seconds(arrays.size(), 0);
  std::vector<std::function<void()>> jobs(arrays.size());
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (!arrays[i]) continue;
    jobs[i] = [&, i] {
      const double start = seams.clock.seconds();
      reports[i] = arrays[i]->run_epoch();
      seconds[i] = seams.clock.seconds() - start;
    };
  }
  workers.run(jobs);
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (!arrays[i]) continue;
    changes.rounds.push_back({round, arrays[i]->id(), arrays[i]->width(), arrays[i]->occupied(), seconds[i]});
    if (auto changed = arrays[i]->take_changes()) changes.arrays.push_back(std::move(*changed));
    for (const SlotReport& report : reports[i]) record(*arrays[i], report);
  }
  const std::vector<search::Verdict> verdicts = ledger.take_verdicts();
  for (const search::Verdict& verdict : verdicts) act_on_paused(verdict);
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    for (const SlotReport& report : reports[i]) act(*arrays[i], report.slot);
  }
  failures.clear();
  ++round;
}

void Driver::Impl::record(const OpenArray& array, const SlotReport& report) {
  const int draw = array.draw_in(report.slot);
  if (draw == OpenArray::kEmpty) {
    throw Error(ErrorKind::kInternal,
                fmt::format("driver: slot {} is empty, and reported epoch {}", report.slot, report.epoch));
  }
  const int number = ledger.trial(draw).number;
  const Told told = ledger.report(draw, report);
  changes.occupancy.push_back({array.id(), round, report.slot, number, report.epoch});
  if (told.recorded) changes.epochs.push_back({number, {report.epoch, report.metrics}, told.value});
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
      entry.state = array.extract(slot);
      entry.phase = Phase::kPaused;
      break;
    case Decision::kStop:
      finish(draw, State::kPruned, "");
      break;
    case Decision::kComplete:
      complete(draw, config.select_best ? entry.best_state.value() : array.extract(slot));
      break;
  }
  array.clear(slot);
}

void Driver::Impl::act_on_paused(const search::Verdict& verdict) {
  if (ledger.entry(verdict.trial).phase != Phase::kPaused) return;  // in a slot: act() does it
  if (verdict.decision == Decision::kContinue) {
    queue.push(verdict.trial);
  } else {
    finish(verdict.trial, State::kPruned, "");
  }
}

void Driver::Impl::complete(int draw, const SlotState& state) {
  const Entry& entry = ledger.entry(draw);
  keeper.keep(ledger.trial(draw).number, *entry.value, entry.value_epoch, state);
  finish(draw, State::kComplete, "");
}

void Driver::Impl::finish(int draw, State state, const std::string& reason) {
  ledger.finish(draw, state, reason);
  const trials::Trial& trial = ledger.trial(draw);
  keeper.forget(trial.number);
  changes.states.push_back({trial.number, state, trial.value, reason, seams.clock.utc()});
}

void Driver::Impl::commit() {
  if (!changes.empty()) seams.store.commit(config.study, changes);
  changes = {};
  keeper.after_commit();
}

void Driver::Impl::save_states() {
  const double start = seams.clock.seconds();
  for (int draw = 0; draw < ledger.drawn(); ++draw) {
    Entry& entry = ledger.entry(draw);
    if (entry.phase != Phase::kDone && entry.state) keeper.save(entry, ledger.trial(draw).number, *entry.state);
  }
  for (const auto& array : packer.arrays()) {
    for (int slot = 0; array && slot < array->width(); ++slot) {
      const int draw = array->draw_in(slot);
      if (draw == OpenArray::kEmpty) continue;
      Entry& entry = ledger.entry(draw);
      if (entry.saved < entry.trained) keeper.save(entry, ledger.trial(draw).number, array->extract(slot));
    }
  }
  last_checkpoint = seams.clock.seconds();
  checkpoint_cost = last_checkpoint - start;
}

void Driver::Impl::save_states_if_due() {
  const double wait = std::max(kCheckpointSeconds, checkpoint_cost / kCheckpointShare);
  if (seams.clock.seconds() - last_checkpoint >= wait) save_states();
}

// Search never sees these numbers: they are taken once, when everything is decided, in an array of one slot so that
// they do not depend on widths.
void Driver::Impl::test_best() {
  const trials::Trial* best = trials::best_of(ledger.trials(), config.goal);
  if (best == nullptr || !best->test_metrics.empty()) return;
  const std::optional<SlotState> state = keeper.finished_state(best->number);
  if (!state) {
    seams.progress.note(
        fmt::format("trial {} is the best, but its weights are not on disk: no test metrics", best->number));
    return;
  }
  const std::unique_ptr<TrainerArray> array = seams.trainers.front()->open(best->params, 1, 1);
  array->insert(0, best->number, best->params, *state);
  std::map<std::string, double> metrics = array->test(0);
  if (metrics.empty()) return;
  changes.test_metrics[best->number] = std::move(metrics);
  commit();
}

Status Driver::Impl::status() {
  Status s;
  s.study = config.study;
  s.metric = config.metric;
  s.round = round;
  s.planned = ledger.cap();
  for (int draw = 0; draw < ledger.drawn(); ++draw) {
    const State state = ledger.trial(draw).state;
    s.complete += state == State::kComplete;
    s.pruned += state == State::kPruned;
    s.failed += state == State::kFail;
  }
  for (const auto& array : packer.arrays()) {
    if (!array) continue;
    s.arrays.push_back({array->device(), array->partition(), array->width(), array->occupied()});
    s.running += array->occupied();
  }
  s.waiting = ledger.drawn() - s.complete - s.pruned - s.failed - s.running;
  s.epochs = ledger.epochs();
  s.epochs_left = ledger.epochs_left();
  s.rate = rate.rate();
  s.seconds = seams.clock.seconds() - began;
  s.best = ledger.best();
  return s;
}

}  // namespace hfta::engine
