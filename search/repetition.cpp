#include "search/repetition.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace hfta::search {
namespace {

constexpr double kFailed = std::numeric_limits<double>::quiet_NaN();

using Runs = std::vector<const SeenTrial*>;

bool failed(const SeenTrial& run) { return run.ended == trials::State::kFail; }

// The value after an epoch (0-based); unset: some repetition has not come as far.
std::optional<double> value_after(const Runs& runs, std::size_t epoch, const trials::Repetitions& repetitions,
                                  trials::Goal goal) {
  std::vector<double> values;
  bool any = false;
  for (const SeenTrial* run : runs) {
    const bool here = epoch < run->curve.size();
    if (!here && !failed(*run)) return std::nullopt;
    any = any || here;
    values.push_back(here ? run->curve[epoch] : kFailed);
  }
  return any ? std::optional(trials::value_of(values, repetitions.rank, goal)) : std::nullopt;
}

std::optional<double> value_now(const Runs& runs, const trials::Repetitions& repetitions, trials::Goal goal) {
  std::vector<double> values;
  for (const SeenTrial* run : runs) {
    if (run->values.empty() && !failed(*run)) return std::nullopt;
    values.push_back(failed(*run) ? kFailed : *run->value());
  }
  const double value = trials::value_of(values, repetitions.rank, goal);
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

SeenTrial seen(const Runs& runs, const trials::Repetitions& repetitions, trials::Goal goal) {
  SeenTrial whole{repetitions.configuration_of(runs.front()->params)};
  if (static_cast<int>(runs.size()) < repetitions.count()) return whole;
  while (const auto value = value_after(runs, whole.curve.size(), repetitions, goal)) whole.curve.push_back(*value);
  if (const auto value = value_now(runs, repetitions, goal)) whole.values = {*value};
  const auto has_ended = [](const SeenTrial* run) { return run->ended.has_value(); };
  if (!std::all_of(runs.begin(), runs.end(), has_ended)) return whole;
  const auto pruned = [](const SeenTrial* run) { return run->ended == trials::State::kPruned; };
  const bool any_pruned = std::any_of(runs.begin(), runs.end(), pruned);
  whole.ended = whole.values.empty() ? trials::State::kFail
                : any_pruned         ? trials::State::kPruned
                                     : trials::State::kComplete;
  return whole;
}

}  // namespace

History by_configuration(const History& trials, const trials::Repetitions& repetitions, trials::Goal goal) {
  if (!repetitions.any()) return trials;
  History configurations;
  const auto count = static_cast<std::size_t>(repetitions.count());
  for (std::size_t first = 0; first < trials.size(); first += count) {
    Runs runs;
    for (std::size_t i = first; i < std::min(first + count, trials.size()); ++i) runs.push_back(&trials[i]);
    configurations.push_back(seen(runs, repetitions, goal));
  }
  return configurations;
}

}  // namespace hfta::search
