#include "engine/driver/goals/measure.hpp"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"

namespace hfta::engine {
namespace {

double value_in(const std::map<std::string, double>& metrics, const std::string& metric) {
  const auto found = metrics.find(metric);
  if (found != metrics.end()) return found->second;
  std::vector<std::string> names;
  names.reserve(metrics.size());
  for (const auto& [name, value] : metrics) names.push_back(name);
  throw Error(ErrorKind::kConfig, fmt::format("metric: name: found '{}', wanted one of the metrics that are taken{}",
                                              printable(metric), suggestion(metric, names)));
}

}  // namespace

Measurement measure(const std::map<std::string, double>& metrics, const trials::Objectives& objectives, int epoch) {
  Measurement measured;
  for (const trials::Objective& objective : objectives) measured.values.push_back(value_in(metrics, objective.metric));
  // train_loss first: where it is not finite, the rest only follows from it.
  std::vector<std::string> names = {"train_loss"};
  for (const trials::Objective& objective : objectives) names.push_back(objective.metric);
  for (const std::string& name : names) {
    const auto entry = metrics.find(name);
    if (entry == metrics.end() || std::isfinite(entry->second)) continue;
    measured.failure = fmt::format("{} is {} at epoch {}", name, shortest(entry->second), epoch);
    if (epoch > 1) measured.failure += fmt::format("; finite until epoch {}", epoch - 1);
    break;
  }
  return measured;
}

std::map<std::string, double> of_objectives(const std::map<std::string, double>& metrics,
                                            const trials::Objectives& objectives) {
  std::map<std::string, double> kept;
  for (const trials::Objective& objective : objectives) {
    const auto found = metrics.find(objective.metric);
    if (found != metrics.end()) kept.insert(*found);
  }
  return kept;
}

std::vector<double> curve_of(const trials::Trial& trial, const std::string& metric) {
  std::vector<double> values;
  const int before = trial.epochs.empty() || trial.epochs.front().epoch != 0 ? 0 : -1;
  for (const trials::EpochRecord& record : trial.epochs) {
    const auto found = record.metrics.find(metric);
    values.push_back(found == record.metrics.end() ? std::numeric_limits<double>::quiet_NaN() : found->second);
    if (record.epoch - before != static_cast<int>(values.size())) return {};
  }
  return values;
}

}  // namespace hfta::engine
