// Driver: goes on with a study as the store and an earlier run left it.

#include <exception>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "engine/driver/arrays/left_arrays.hpp"
#include "engine/driver/driver_impl.hpp"

namespace hfta::engine {

using search::Decision;
using trials::State;

// Loads the study from the store into this run.
void Driver::Impl::go_on() {
  const std::vector<search::Verdict> copies_due = table.restore(dependencies.store);
  for (int draw = 0; draw < table.drawn(); ++draw) {
    if (is_whole(draw)) table.assign(draw, config.partition(table.params(draw)));
  }
  checkpoints.begin(table);
  (void)copy_trials(copies_due, nullptr);
  recall();
  std::vector<std::string> labels;
  for (const Trainer* trainer : dependencies.trainers) labels.push_back(trainer->device_facts().name);
  left = arrays_left(dependencies.store, config.study, table, labels);
  if (!table.learns() || !catching_up.begin()) reopen_arrays();
}

void Driver::Impl::end_catching_up() {
  catching_up.end();
  if (!halted()) reopen_arrays();
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

}  // namespace hfta::engine
