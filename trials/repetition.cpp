#include "trials/repetition.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "base/mean.hpp"

namespace hfta::trials {
namespace {

double infinitely_bad(Goal goal) {
  const double infinity = std::numeric_limits<double>::infinity();
  return goal == Goal::kMinimize ? infinity : -infinity;
}

Parameter axis(const char* name, int count) {
  Parameter parameter;
  parameter.name = name;
  parameter.distribution.kind = DistributionKind::kIntUniform;
  parameter.distribution.min = 0;
  parameter.distribution.max = count - 1;
  return parameter;
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  if (values.size() % 2 == 1) return values[half];
  return std::midpoint(values[half - 1], values[half]);
}

// The standard deviation; squares of huge values are taken after scaling by 2^-520.
double deviation_of(const std::vector<double>& values, double mean) {
  for (const double scale : {1.0, 0x1p-520}) {
    double squares = 0;
    for (const double value : values) {
      const double off = value * scale - mean * scale;
      squares += off * off;
    }
    if (std::isfinite(squares)) return std::sqrt(squares / (static_cast<double>(values.size()) - 1)) / scale;
  }
  return std::numeric_limits<double>::infinity();
}

// The final value of a trial; failed ones are infinitely bad. NaN: it has not ended yet, or was stopped.
double settled_value(const Trial& trial, Goal goal) {
  if (trial.state == State::kFail) return infinitely_bad(goal);
  if (trial.state != State::kComplete) return std::numeric_limits<double>::quiet_NaN();
  const std::optional<double> value = trial.value();
  return value && std::isfinite(*value) ? *value : infinitely_bad(goal);
}

// The best of the configurations that are whole, ties to the lower draw.
std::optional<Configuration> best_configuration(const std::vector<const Trial*>& drawn, const Repetitions& repetitions,
                                                Goal goal) {
  std::optional<Configuration> best;
  for (Configuration& one : configurations_of(drawn, repetitions, goal)) {
    if (std::isfinite(one.value) && (!best || better(one.value, best->value, goal))) best = std::move(one);
  }
  return best;
}

}  // namespace

const std::vector<std::string>& rank_names() {
  static const std::vector<std::string> names = {"mean", "lower", "median"};
  return names;
}

const char* name_of(Rank rank) { return rank_names().at(static_cast<std::size_t>(rank)).c_str(); }

Rank rank_from(std::string_view name) {
  const std::vector<std::string>& names = rank_names();
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? Rank::kMean : static_cast<Rank>(found - names.begin());
}

Space Repetitions::axes() const {
  Space space;
  if (seeds > 1) space.push_back(axis(kRepeat, seeds));
  if (folds > 1) space.push_back(axis(kFold, folds));
  return space;
}

Params Repetitions::params_of(const Params& configuration, int index) const {
  Params params = configuration;
  if (seeds > 1) params.emplace_back(kRepeat, std::int64_t{index / folds});
  if (folds > 1) params.emplace_back(kFold, std::int64_t{index % folds});
  return params;
}

Params Repetitions::configuration_of(const Params& trial) const {
  Params params = trial;
  std::erase_if(params, [this](const auto& param) {
    return (seeds > 1 && param.first == kRepeat) || (folds > 1 && param.first == kFold);
  });
  return params;
}

Summary summarize(std::vector<double> values, double confidence) {
  Summary summary;
  summary.count = static_cast<int>(values.size());
  const auto n = static_cast<double>(values.size());
  summary.mean = mean_of(values);
  summary.deviation = summary.low = summary.high = std::numeric_limits<double>::quiet_NaN();
  if (summary.count >= 2) summary.deviation = deviation_of(values, summary.mean);
  summary.median = median_of(std::move(values));
  if (summary.count < 2) return summary;
  const boost::math::students_t student(n - 1);
  const double half = boost::math::quantile(student, 0.5 + confidence / 2) * summary.deviation / std::sqrt(n);
  summary.low = summary.mean - half;
  summary.high = summary.mean + half;
  return summary;
}

double value_of(const std::vector<double>& values, Rank rank, Goal goal) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> settled = values;
  bool all_finite = true;
  for (double& value : settled) {
    if (std::isfinite(value)) continue;
    value = infinitely_bad(goal);
    all_finite = false;
  }
  if (settled.empty() || (!all_finite && rank != Rank::kMedian)) return kNone;
  if (rank == Rank::kMedian) {
    const double median = median_of(std::move(settled));
    return std::isfinite(median) ? median : kNone;
  }
  const Summary summary = summarize(std::move(settled));
  if (rank == Rank::kMean) return summary.mean;
  return goal == Goal::kMinimize ? summary.high : summary.low;
}

std::vector<Configuration> configurations_of(const std::vector<const Trial*>& drawn, const Repetitions& repetitions,
                                             Goal goal) {
  std::vector<Configuration> all;
  for (int draw = 0; draw < static_cast<int>(drawn.size()); ++draw) {
    if (repetitions.index_of(draw) == 0) all.push_back({repetitions.configuration_of(draw), {}, 0});
    all.back().trials.push_back(drawn[static_cast<std::size_t>(draw)]);
  }
  for (Configuration& configuration : all) {
    std::vector<double> values;
    for (const Trial* trial : configuration.trials) values.push_back(settled_value(*trial, goal));
    const bool whole = static_cast<int>(values.size()) == repetitions.count() &&
                       std::none_of(values.begin(), values.end(), [](double value) { return std::isnan(value); });
    configuration.value = whole ? value_of(values, repetitions.rank, goal) : std::numeric_limits<double>::quiet_NaN();
  }
  return all;
}

const Trial* best_of(const std::vector<const Trial*>& drawn, const Repetitions& repetitions, Goal goal) {
  const std::optional<Configuration> best = best_configuration(drawn, repetitions, goal);
  const Trial* found = nullptr;
  for (const Trial* trial : best ? best->trials : drawn) {
    const std::optional<double> value = trial->value();
    if (trial->state != State::kComplete || !value || !std::isfinite(*value)) continue;
    if (found == nullptr || better(*value, *found->value(), goal)) found = trial;
  }
  return found;
}

std::optional<double> best_value(const std::vector<const Trial*>& drawn, const Repetitions& repetitions, Goal goal) {
  const std::optional<Configuration> best = best_configuration(drawn, repetitions, goal);
  return best ? std::optional(best->value) : std::nullopt;
}

std::vector<const Trial*> in_order(const std::vector<Trial>& trials, const std::vector<int>& numbers) {
  std::map<int, const Trial*> by_number;
  for (const Trial& trial : trials) by_number[trial.number] = &trial;
  std::vector<const Trial*> order;
  for (const int number : numbers) {
    const auto found = by_number.find(number);
    if (found == by_number.end()) break;
    order.push_back(found->second);
  }
  return order;
}

}  // namespace hfta::trials
