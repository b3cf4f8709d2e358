// A stored study as the events that its runs told.

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "engine/events/event.hpp"
#include "engine/report/configurations.hpp"
#include "engine/report/report.hpp"
#include "trials/pareto.hpp"

namespace hfta::engine {
namespace {

using trials::Trial;

/// Puts events in order while it goes through the rounds.
class Retold {
 public:
  explicit Retold(const ReportInput& input) : input_(input) {
    for (const Trial& trial : input.trials) trials_[trial.number] = &trial;
    for (const storage::ArrayRecord& array : input.arrays) arrays_[array.array] = &array;
  }

  std::vector<Event> events() {
    begin();
    auto place = input_.places.begin();
    for (const storage::RoundRecord& round : input_.rounds) {
      change_array(round);
      for (; place != input_.places.end() && place->round <= round.round; ++place) train(*place);
    }
    for (const Trial& trial : input_.trials) end(trial);  // those that ended in no slot
    finish();
    return std::move(events_);
  }

 private:
  void begin() {
    RunStarted started{input_.study, "", input_.objectives, {}, false};
    std::set<std::string> devices;
    for (const storage::ArrayRecord& array : input_.arrays) devices.insert(array.device);
    started.devices.assign(devices.begin(), devices.end());
    events_.emplace_back(std::move(started));
  }

  void change_array(const storage::RoundRecord& round) {
    const auto array = arrays_.find(round.array);
    if (array == arrays_.end() || std::exchange(widths_[round.array], round.width) == round.width) return;
    const storage::ArrayRecord& known = *array->second;
    events_.emplace_back(
        ArrayChanged{round.array, known.device, known.partition, round.width, known.chunk, known.threads});
  }

  // Epochs that were trained again after a kill are told once, as in the run.
  void train(const storage::OccupancyRecord& place) {
    const auto found = trials_.find(place.trial);
    if (found == trials_.end()) return;
    const Trial& trial = *found->second;
    int& told = told_[trial.number];
    if (told == 0) events_.emplace_back(TrialStarted{trial.number, trial.params, place.array, place.slot});
    for (const trials::EpochRecord& epoch : trial.epochs) {
      if (epoch.epoch <= told || epoch.epoch > place.epoch) continue;
      const auto value = epoch.metrics.find(input_.objectives.front().metric);
      events_.emplace_back(EpochEnded{trial.number, epoch.epoch, epoch.metrics,
                                      value == epoch.metrics.end() ? std::nan("") : value->second, place.array,
                                      place.slot});
      for (const trials::Copy& copy : trial.copies) {
        if (copy.epoch == epoch.epoch) {
          events_.emplace_back(TrialCopied{trial.number, copy.epoch, copy.source, copy.params});
        }
      }
      told = epoch.epoch;
    }
    const bool is_last = trial.epochs.empty() || told == trial.epochs.back().epoch;
    if (is_last && trial.state == trials::State::kComplete) end(trial);
  }

  void end(const Trial& trial) {
    const bool done = trial.state != trials::State::kRunning && trial.state != trials::State::kWaiting;
    if (!done || !ended_.insert(trial.number).second) return;
    events_.emplace_back(TrialEnded{trial.number, trial.state, trial.values, trial.reason});
  }

  void finish() {
    const bool several = input_.objectives.size() > 1;
    std::vector<const Trial*> best;
    if (several) best = trials::best_of(input_.trials, input_.objectives);
    if (const Trial* one = best_of(input_)) best.push_back(one);
    for (const Trial* one : best) {
      if (!one->test_metrics.empty()) events_.emplace_back(Tested{one->number, one->test_metrics});
    }
    const bool goes_on =
        input_.ended_by.empty() && std::any_of(input_.trials.begin(), input_.trials.end(), [](const Trial& trial) {
          return trial.state == trials::State::kRunning || trial.state == trials::State::kWaiting;
        });
    if (several) {
      events_.emplace_back(RunEnded{!goes_on, std::nullopt, numbers_of(best)});
    } else {
      events_.emplace_back(RunEnded{!goes_on, best_complete(best.empty() ? nullptr : best.front())});
    }
  }

  const ReportInput& input_;
  std::map<int, const Trial*> trials_;                 // by number
  std::map<int, const storage::ArrayRecord*> arrays_;  // by array
  std::map<int, int> widths_, told_;                   // widths by array; epochs told by trial
  std::set<int> ended_;
  std::vector<Event> events_;
};

}  // namespace

std::string report_events(const ReportInput& input) {
  std::string lines;
  for (const Event& event : Retold(input).events()) lines += event_json(event) + "\n";
  return lines;
}

}  // namespace hfta::engine
