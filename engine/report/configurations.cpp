#include "engine/report/configurations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/text.hpp"
#include "engine/report/columns.hpp"
#include "engine/report/words.hpp"

namespace hfta::engine {
namespace {

using trials::State;
using trials::Trial;

ConfigurationRow row_of(trials::Configuration configuration) {
  ConfigurationRow row;
  std::vector<double> values;
  for (const Trial* trial : configuration.trials) {
    row.complete += trial->state == State::kComplete ? 1 : 0;
    row.pruned += trial->state == State::kPruned ? 1 : 0;
    row.failed += trial->state == State::kFail ? 1 : 0;
    row.running += trial->state == State::kRunning ? 1 : 0;
    const bool counts = trial->state == State::kComplete && trial->value() && std::isfinite(*trial->value());
    if (counts) values.push_back(*trial->value());
  }
  if (!values.empty()) row.summary = trials::summarize(std::move(values));
  row.configuration = std::move(configuration);
  return row;
}

std::string number_text(double value) { return std::isfinite(value) ? value_text(value) : "-"; }

// "5 COMPLETE", "3 COMPLETE, 2 FAIL"
std::string states_text(const ConfigurationRow& row) {
  std::vector<std::string> words;
  for (const auto& [count, name] : {std::pair(row.complete, "COMPLETE"), std::pair(row.running, "RUNNING"),
                                    std::pair(row.pruned, "PRUNED"), std::pair(row.failed, "FAIL")}) {
    if (count > 0) words.push_back(fmt::format("{} {}", count, name));
  }
  return join(words);
}

std::string repetitions_text(const trials::Repetitions& repetitions) {
  if (repetitions.folds == 1) return fmt::format("{} seeds", repetitions.seeds);
  if (repetitions.seeds == 1) return fmt::format("{} folds", repetitions.folds);
  return fmt::format("{} seeds x {} folds", repetitions.seeds, repetitions.folds);
}

}  // namespace

std::vector<ConfigurationRow> configuration_rows(const ReportInput& input) {
  if (!input.repetitions.any()) return {};
  std::vector<ConfigurationRow> rows;
  for (trials::Configuration& one : trials::configurations_of(trials::in_order(input.trials, input.draws),
                                                              input.repetitions, input.objectives.front().goal)) {
    rows.push_back(row_of(std::move(one)));
  }
  std::stable_sort(rows.begin(), rows.end(), [&](const ConfigurationRow& a, const ConfigurationRow& b) {
    return trials::better(a.configuration.value, b.configuration.value, input.objectives.front().goal);
  });
  return rows;
}

const Trial* best_of(const ReportInput& input) {
  if (input.objectives.size() > 1) return nullptr;
  if (!input.repetitions.any()) return trials::best_of(input.trials, input.objectives.front().goal);
  return trials::best_of(trials::in_order(input.trials, input.draws), input.repetitions, input.objectives.front().goal);
}

std::string configurations_text(const ReportInput& input, int top) {
  std::vector<ConfigurationRow> rows = configuration_rows(input);
  if (rows.empty()) return "";
  std::string out = fmt::format("\nconfigurations: {}, each with {}; ranked by {}\n", rows.size(),
                                repetitions_text(input.repetitions), trials::name_of(input.repetitions.rank));
  const std::size_t all = rows.size();
  rows.resize(std::min(rows.size(), static_cast<std::size_t>(std::max(top, 0))));
  if (rows.empty()) return out;
  std::vector<std::string> header = {
      "configuration", "trials", trials::name_of(input.repetitions.rank), "mean", "deviation", "95 % from", "to"};
  const bool by_mean = input.repetitions.rank == trials::Rank::kMean;
  if (by_mean) header.erase(header.begin() + 2);
  const trials::Params names = input.repetitions.configuration_of(rows.front().configuration.trials.front()->params);
  for (const auto& [name, value] : names) header.push_back(printable(name));
  std::vector<std::vector<std::string>> cells;
  for (const ConfigurationRow& row : rows) {
    const trials::Summary summary =
        row.summary.value_or(trials::Summary{0, std::nan(""), std::nan(""), std::nan(""), std::nan(""), std::nan("")});
    std::vector<std::string> line = {std::to_string(row.configuration.index), states_text(row)};
    if (!by_mean) line.push_back(number_text(row.configuration.value));
    for (const double number : {summary.mean, summary.deviation, summary.low, summary.high}) {
      line.push_back(number_text(number));
    }
    const trials::Params params = input.repetitions.configuration_of(row.configuration.trials.front()->params);
    for (const auto& wanted : names) {
      const auto found =
          std::find_if(params.begin(), params.end(), [&](const auto& one) { return one.first == wanted.first; });
      line.push_back(found == params.end() ? "-" : param_text(found->second));
    }
    cells.push_back(std::move(line));
  }
  out += in_columns(header, cells);
  if (rows.size() < all) out += fmt::format("({} more; --top shows more of them)\n", all - rows.size());
  return out;
}

}  // namespace hfta::engine
