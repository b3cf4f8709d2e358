#include "engine/report/confusion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/text.hpp"
#include "engine/report/columns.hpp"
#include "engine/report/words.hpp"
#include "fusion/metric.hpp"

namespace hfta::engine {
namespace {

constexpr std::size_t kMostShown = 20;  // most classes shown; more do not fit on a screen

struct Cell {
  std::string set;  // "val"
  std::uint32_t row, column;
};

// The cell that a name stands for: "val_confusion_0_1".
std::optional<Cell> cell_of(std::string_view name) {
  static const fusion::MetricSpec kMetric{.name = "confusion_matrix"};
  const std::size_t set = name.find('_');
  if (set == std::string_view::npos || !fusion::gives(kMetric, name.substr(set + 1))) return std::nullopt;
  const std::size_t column = name.rfind('_') + 1, row = name.rfind('_', column - 2) + 1;
  Cell cell{std::string(name.substr(0, set)), 0, 0};
  const char* const text = name.data();
  const bool fits = std::from_chars(text + row, text + column - 1, cell.row).ec == std::errc() &&
                    std::from_chars(text + column, text + name.size(), cell.column).ec == std::errc();
  return fits ? std::optional(cell) : std::nullopt;
}

using Cells = std::vector<std::pair<Cell, const std::pair<const std::string, double>*>>;  // cells with their metrics

// The number of classes of a whole matrix of two or more; 0: the cells are none.
std::size_t classes_of(const Cells& cells) {
  std::size_t classes = 0;
  for (const auto& [cell, metric] : cells) {
    classes = std::max(classes, std::size_t{std::max(cell.row, cell.column)} + 1);
  }
  return classes >= 2 && cells.size() / classes == classes && cells.size() % classes == 0 ? classes : 0;
}

std::string count_text(double count) {
  return std::isfinite(count) && count == std::floor(count) ? fmt::format("{:.0f}", count) : value_text(count);
}

// The matrix as lines, each indented by two spaces.
std::string lines_of(const ConfusionMatrix& matrix) {
  std::vector<std::string> header = {""};
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    header.push_back(std::to_string(i));
    rows.push_back({std::to_string(i)});
    for (const double count : matrix[i]) rows.back().push_back(count_text(count));
  }
  std::string lines = in_columns(header, rows);
  for (std::size_t at = 0; at < lines.size(); at = lines.find('\n', at) + 1) lines.insert(at, "  ");
  return lines;
}

}  // namespace

SplitMetrics split(const std::map<std::string, double>& metrics, const std::string& kept) {
  SplitMetrics result;
  std::map<std::string, Cells> by_set;
  for (const auto& metric : metrics) {
    if (const std::optional<Cell> cell = cell_of(metric.first)) {
      by_set[cell->set].emplace_back(*cell, &metric);
    } else {
      result.numbers.insert(metric);
    }
  }
  for (const auto& [set, cells] : by_set) {
    const std::size_t classes = classes_of(cells);
    if (classes > 0) result.matrices[set] = ConfusionMatrix(classes, std::vector<double>(classes));
    for (const auto& [cell, metric] : cells) {
      if (classes > 0) result.matrices[set][cell.row][cell.column] = metric->second;
      if (classes == 0 || metric->first == kept) result.numbers.insert(*metric);
    }
  }
  return result;
}

const trials::EpochRecord* valued_epoch(const ReportInput& input, const trials::Trial& trial) {
  if (trial.epochs.empty()) return nullptr;
  const auto found = std::find_if(trial.epochs.begin(), trial.epochs.end(), [&](const trials::EpochRecord& epoch) {
    const auto value = epoch.metrics.find(input.objectives.front().metric);
    return input.select_best && value != epoch.metrics.end() && trial.value() == value->second;
  });
  return found == trial.epochs.end() ? &trial.epochs.back() : &*found;
}

std::map<std::string, ConfusionMatrix> confusion_of(const ReportInput& input, const trials::Trial& trial) {
  const trials::EpochRecord* epoch = valued_epoch(input, trial);
  if (epoch == nullptr) return {};
  return split(epoch->metrics, input.objectives.front().metric).matrices;
}

std::string confusion_text(const ReportInput& input, const trials::Trial& trial) {
  const trials::EpochRecord* epoch = valued_epoch(input, trial);
  std::map<std::string, ConfusionMatrix> all = split(trial.test_metrics, input.objectives.front().metric).matrices;
  all.merge(confusion_of(input, trial));
  std::string text;
  for (const auto& [set, matrix] : all) {
    text += fmt::format("  confusion matrix ({}, epoch {})", printable(set), epoch == nullptr ? 0 : epoch->epoch);
    text += matrix.size() > kMostShown ? fmt::format(": {} classes; --format json has it\n", matrix.size())
                                       : ", true classes in rows, predicted ones in columns:\n" + lines_of(matrix);
  }
  return text;
}

std::string to_text(const ConfusionMatrix& matrix) {
  std::vector<std::string> rows;
  for (const std::vector<double>& row : matrix) {
    std::vector<std::string> cells;
    cells.reserve(row.size());
    for (const double count : row) cells.push_back(count_text(count));
    rows.push_back("[" + join(cells, ",") + "]");
  }
  return "[" + join(rows, ",") + "]";
}

}  // namespace hfta::engine
