#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "fusion/metrics/table/rows.hpp"

namespace hfta::fusion {
namespace {

const MetricRow* find_row(std::string_view name) {
  const auto& rows = metric_rows();
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const MetricRow& row) { return row.info.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

/// The recorded name without its indices: "top_5", "f1_micro", "confusion".
std::string stem_of(const MetricSpec& spec) {
  const MetricRow& row = row_of(spec);
  std::string stem = row.recorded;
  for (const MetricOption& option : row.info.options) {
    if (const auto* number = std::get_if<int MetricSpec::*>(&option.field)) {
      stem += fmt::format("_{}", spec.**number);
      continue;
    }
    const Average average = spec.*std::get<Average MetricSpec::*>(option.field);
    if (average == Average::kMicro || average == Average::kWeighted) stem += fmt::format("_{}", name_of(average));
  }
  return stem;
}

/// Takes "_12" off the front, but not "_012".
bool take_index(std::string_view& text) {
  if (!text.starts_with('_')) return false;
  text.remove_prefix(1);
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits == 0 || (digits > 1 && text.front() == '0')) return false;
  text.remove_prefix(digits);
  return true;
}

}  // namespace

const char* name_of(OutputKind kind) {
  switch (kind) {
    case OutputKind::kClassScores:
      return "class scores";
    case OutputKind::kLogit:
      return "logits";
    case OutputKind::kProbability:
      return "probabilities";
    case OutputKind::kMargin:
      return "margins";
    case OutputKind::kValue:
      break;
  }
  return "values";
}

const char* name_of(Average average) {
  switch (average) {
    case Average::kMacro:
      return "macro";
    case Average::kMicro:
      return "micro";
    case Average::kWeighted:
      return "weighted";
    case Average::kNone:
      break;
  }
  return "none";
}

std::vector<OutputKind> kinds_of_classes() {
  return {OutputKind::kClassScores, OutputKind::kLogit, OutputKind::kProbability, OutputKind::kMargin};
}

const std::vector<MetricRow>& metric_rows() {
  static const std::vector<MetricRow> all = [] {
    std::vector<MetricRow> rows;
    for (auto* family : {hit_rows, class_rows, curve_rows, likelihood_rows, confusion_rows, error_rows}) {
      for (MetricRow& row : family()) rows.push_back(std::move(row));
    }
    return rows;
  }();
  return all;
}

const MetricRow& row_of(const MetricSpec& spec) {
  const MetricRow* row = find_row(spec.name);
  if (row == nullptr) {
    std::vector<std::string> names;
    for (const MetricInfo& info : metrics()) names.emplace_back(info.name);
    throw Error(ErrorKind::kConfig, fmt::format("metrics: found '{}', wanted a metric{}", printable(spec.name),
                                                suggestion(spec.name, names)));
  }
  return *row;
}

bool MetricInfo::takes_kind(OutputKind kind) const {
  return std::find(takes.begin(), takes.end(), kind) != takes.end();
}

const std::vector<MetricInfo>& metrics() {
  static const std::vector<MetricInfo> all = [] {
    std::vector<MetricInfo> infos;
    for (const MetricRow& row : metric_rows()) infos.push_back(row.info);
    return infos;
  }();
  return all;
}

const MetricInfo* find_metric(std::string_view name) {
  const MetricRow* row = find_row(name);
  return row == nullptr ? nullptr : &row->info;
}

std::vector<MetricSpec> default_metrics(OutputKind kind) {
  std::vector<MetricSpec> specs;
  for (const char* name : {"accuracy", "mse", "mae", "r2"}) {
    if (find_metric(name)->takes_kind(kind)) specs.push_back({.name = name});
  }
  return specs;
}

int index_count(const MetricSpec& spec) {
  const MetricRow& row = row_of(spec);
  const bool averages = std::any_of(row.info.options.begin(), row.info.options.end(), [](const MetricOption& option) {
    return std::holds_alternative<Average MetricSpec::*>(option.field);
  });
  return row.indices + (averages && spec.average == Average::kNone ? 1 : 0);
}

void check_value_count(const MetricSpec& spec, std::int64_t values) {
  if (values <= kMostMetricValues) return;
  throw Error(ErrorKind::kConfig, fmt::format("metrics: {}: found {} numbers, one for each class or pair of classes; "
                                              "wanted at most {}",
                                              spec.name, values, kMostMetricValues));
}

std::string recorded_name(const MetricSpec& spec, const std::vector<int>& indices) {
  std::string name = stem_of(spec);
  for (const int index : indices) name += fmt::format("_{}", index);
  return name;
}

bool gives(const MetricSpec& spec, std::string_view name) {
  const std::string stem = stem_of(spec);
  if (!name.starts_with(stem)) return false;
  name.remove_prefix(stem.size());
  for (int i = index_count(spec); i > 0; --i) {
    if (!take_index(name)) return false;
  }
  return name.empty();
}

}  // namespace hfta::fusion
