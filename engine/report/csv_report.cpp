// Reports as CSV.

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.hpp"
#include "engine/report/configurations.hpp"
#include "engine/report/confusion.hpp"
#include "engine/report/front.hpp"
#include "engine/report/report.hpp"
#include "engine/report/rows.hpp"

namespace hfta::engine {
namespace {

using trials::Trial;

std::string quoted(const std::string& cell) {
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string out = "\"";
  for (const char c : cell) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) line += (i > 0 ? "," : "") + quoted(cells[i]);
  return line + "\r\n";
}

std::string cell(const std::optional<double>& value) { return value ? shortest(*value) : ""; }

// Names of parameters in the order of their first appearance; a trial that Optuna added may have others.
std::vector<std::string> param_names(const std::vector<Trial>& trials) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const Trial& trial : trials) {
    for (const auto& [name, value] : trial.params) {
      if (seen.insert(name).second) names.push_back(name);
    }
  }
  return names;
}

std::set<std::string> metric_names(const ReportInput& input) {
  std::set<std::string> names;
  for (const Trial& trial : input.trials) {
    for (const auto& [name, value] : last_metrics(input, trial)) names.insert(name);
  }
  return names;
}

std::set<std::string> confusion_sets(const ReportInput& input) {
  std::set<std::string> sets;
  for (const Trial& trial : input.trials) {
    for (const auto& [set, matrix] : confusion_of(input, trial)) sets.insert(set);
  }
  return sets;
}

// The CSV's cells on each trial's configuration, by the trial's number.
std::map<int, std::vector<std::string>> configuration_cells(const ReportInput& input) {
  std::map<int, std::vector<std::string>> cells;
  for (const ConfigurationRow& row : configuration_rows(input)) {
    const auto text = [](double value) { return std::isfinite(value) ? shortest(value) : std::string(); };
    std::vector<std::string> line = {std::to_string(row.configuration.index), text(row.configuration.value)};
    for (const auto field : {&trials::Summary::mean, &trials::Summary::deviation, &trials::Summary::low,
                             &trials::Summary::high, &trials::Summary::median}) {
      line.push_back(row.summary ? text((*row.summary).*field) : "");
    }
    for (const Trial* trial : row.configuration.trials) cells[trial->number] = line;
  }
  return cells;
}

// Columns of several objectives: a value each, and the front that the trial is on, from 0.
std::vector<std::string> value_columns(const ReportInput& input) {
  if (input.objectives.size() == 1) return {"value"};
  std::vector<std::string> names;
  for (const trials::Objective& objective : input.objectives) names.push_back("values." + objective.metric);
  names.emplace_back("front");
  return names;
}

void add_value_cells(const ReportInput& input, const Trial& trial, const std::map<int, int>& fronts,
                     std::vector<std::string>& cells) {
  for (std::size_t i = 0; i < input.objectives.size(); ++i) {
    cells.push_back(i < trial.values.size() ? shortest(trial.values[i]) : "");
  }
  if (input.objectives.size() == 1) return;
  const auto front = fronts.find(trial.number);
  cells.push_back(front != fronts.end() ? std::to_string(front->second) : "");
}

}  // namespace

std::string report_csv(const ReportInput& input, std::optional<int> top) {
  const std::vector<std::string> params = param_names(input.trials);
  const std::set<std::string> metrics = metric_names(input), confusion = confusion_sets(input);
  std::vector<std::string> header = {"number", "state"};
  for (const std::string& name : value_columns(input)) header.push_back(spreadsheet_cell(name));
  header.insert(header.end(), {"epochs", "duration_s"});
  for (const std::string& name : params) header.push_back(spreadsheet_cell("params." + name));
  for (const std::string& name : metrics) header.push_back(spreadsheet_cell("metrics." + name));
  for (const std::string& set : confusion) header.push_back(spreadsheet_cell("confusion_matrix." + set));
  header.emplace_back("reason");
  static const std::vector<std::string> kConfigurationCells = {
      "configuration",     "configuration.value", "configuration.mean",  "configuration.deviation",
      "configuration.low", "configuration.high",  "configuration.median"};
  const std::map<int, std::vector<std::string>> configurations = configuration_cells(input);
  if (input.repetitions.any()) header.insert(header.end(), kConfigurationCells.begin(), kConfigurationCells.end());
  const std::map<int, int> fronts = fronts_by_number(input);
  std::string out = csv_line(header);
  for (const Trial* trial : chosen(input, top)) {
    std::vector<std::string> cells = {std::to_string(trial->number), trials::name_of(trial->state)};
    add_value_cells(input, *trial, fronts, cells);
    cells.insert(cells.end(), {std::to_string(last_epoch(*trial)), cell(duration(*trial))});
    for (const std::string& name : params) {
      const trials::Params& latest = latest_params(*trial);
      const auto found = std::find_if(latest.begin(), latest.end(), [&](const auto& p) { return p.first == name; });
      cells.push_back(found == latest.end() ? "" : spreadsheet_cell(trials::to_text(found->second)));
    }
    const std::map<std::string, double> last = last_metrics(input, *trial);
    for (const std::string& name : metrics) {
      const auto found = last.find(name);
      cells.push_back(found == last.end() ? "" : shortest(found->second));
    }
    const std::map<std::string, ConfusionMatrix> matrices = confusion_of(input, *trial);
    for (const std::string& set : confusion) {
      const auto found = matrices.find(set);
      cells.push_back(found == matrices.end() ? "" : to_text(found->second));
    }
    cells.push_back(spreadsheet_cell(trial->reason));
    if (input.repetitions.any()) {
      const auto found = configurations.find(trial->number);  // a trial that Optuna added is in none
      const std::vector<std::string> none(kConfigurationCells.size());
      const std::vector<std::string>& more = found == configurations.end() ? none : found->second;
      cells.insert(cells.end(), more.begin(), more.end());
    }
    out += csv_line(cells);
  }
  return out;
}

}  // namespace hfta::engine
