#include "engine/report/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/error.hpp"
#include "base/text.hpp"
#include "engine/report/configurations.hpp"
#include "engine/report/front.hpp"
#include "engine/study_record/study_record.hpp"

namespace hfta::engine {
namespace {

int place(trials::State state) {
  switch (state) {
    case trials::State::kComplete:
      return 0;
    case trials::State::kRunning:
      return 1;
    case trials::State::kPruned:
      return 2;
    case trials::State::kWaiting:
      return 3;
    case trials::State::kFail:
      break;
  }
  return 4;
}

// Whether `a` is before `b`; a trial without a place comes last.
bool is_ahead(const std::optional<FrontPlace>& a, const std::optional<FrontPlace>& b) {
  if (!a || !b) return a.has_value() && !b;
  return a->front != b->front ? a->front < b->front : a->crowding > b->crowding;
}

void rank_configurations(storage::StudySummary& study, storage::Store& store) try {
  const std::optional<storage::StudyRecord> record = store.find(study.name);
  const std::optional<KeptConfig> kept = record ? unpack(*record) : std::nullopt;
  if (!study.best || !kept || !settings_of(*kept, study.name).repetitions.any()) return;
  const ReportInput input = read_report(store, study.name);
  const trials::Trial* best = best_of(input);
  study.best = best == nullptr ? std::nullopt : best->value();
} catch (const Error& error) {
  if (error.kind() != ErrorKind::kStorage) throw;
}

}  // namespace

ReportInput read_report(storage::Store& store, const std::string& study) {
  const std::optional<storage::StudyRecord> record = store.find(study);
  if (!record) {
    std::vector<std::string> names;
    for (const storage::StudySummary& summary : store.studies()) names.push_back(printable(summary.name));
    throw Error(ErrorKind::kConfig, "study: found '" + printable(study) + "', wanted one that is in the store" +
                                        (names.empty() ? "; it has none" : suggestion(study, names)));
  }
  ReportInput input{study, record->objectives, store.trials(study, storage::Store::Damage::kMark)};
  for (trials::Objective& objective : input.objectives) {
    if (objective.metric.empty()) objective.metric = "value";
  }
  if (const std::optional<KeptConfig> kept = unpack(*record)) {
    const KeptSettings settings = settings_of(*kept, study);
    input.select_best = settings.select_best;
    input.method = settings.method;
    if (kept->choice) input.method_reason = kept->choice->reason;
    input.repetitions = settings.repetitions;
  }
  input.ended_by = record->progress.ended_by;
  if (input.repetitions.any()) input.draws = store.draws(study);
  for (const trials::Trial& trial : input.trials) {
    if (storage::Store::is_marked(trial))
      input.damage.push_back(fmt::format("trial {}: {}", trial.number, trial.reason));
  }
  // Results are useful without these.
  try {
    input.arrays = store.arrays(study);
    input.rounds = store.rounds(study);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kStorage) throw;
    input.rounds.clear();
    input.damage.emplace_back(error.what());
  }
  if (!input.rounds.empty()) input.places = store.occupancy(study);
  if (!input.rounds.empty()) input.occupancy = occupancy_of(input.rounds, input.places, input.trials);
  return input;
}

std::vector<storage::StudySummary> read_studies(storage::Store& store) {
  std::vector<storage::StudySummary> studies = store.studies();
  for (storage::StudySummary& study : studies) rank_configurations(study, store);
  return studies;
}

std::map<std::string, int> count_states(const std::vector<trials::Trial>& trials) {
  std::map<std::string, int> counts;
  for (const trials::Trial& trial : trials) ++counts[trials::name_of(trial.state)];
  return counts;
}

std::vector<std::optional<double>> latest_values(const trials::Trial& trial, const trials::Objectives& objectives) {
  const std::vector<double>& values = trial.values;
  std::vector<std::optional<double>> latest;
  for (std::size_t i = 0; i < objectives.size(); ++i) {
    std::optional<double> value;
    if (i < values.size()) value = values[i];
    if (values.empty() && !trial.epochs.empty()) {
      const auto& metrics = trial.epochs.back().metrics;
      const auto last = metrics.find(objectives[i].metric);
      if (last != metrics.end()) value = last->second;
    }
    latest.push_back(value);
  }
  return latest;
}

std::optional<double> latest_value(const trials::Trial& trial, const trials::Objectives& objectives) {
  return latest_values(trial, objectives).front();
}

std::vector<const trials::Trial*> ranked(const std::vector<trials::Trial>& trials,
                                         const trials::Objectives& objectives) {
  std::vector<std::optional<FrontPlace>> places(trials.size());
  if (objectives.size() > 1) places = front_places(trials, objectives);
  std::vector<std::size_t> order(trials.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto value = [&](const trials::Trial& t) {
    return (t.state == trials::State::kRunning ? latest_value(t, objectives) : t.value()).value_or(std::nan(""));
  };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) {
    const trials::Trial &a = trials[i], &b = trials[j];
    if (place(a.state) != place(b.state)) return place(a.state) < place(b.state);
    if (a.feasible != b.feasible) return a.feasible;
    if (objectives.size() == 1) return trials::better(value(a), value(b), objectives.front().goal);
    return is_ahead(places[i], places[j]);
  });
  std::vector<const trials::Trial*> rows;
  rows.reserve(order.size());
  for (const std::size_t i : order) rows.push_back(&trials[i]);
  return rows;
}

}  // namespace hfta::engine
