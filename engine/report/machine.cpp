// Reports as JSON and CSV.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.hpp"
#include "engine/report/configurations.hpp"
#include "engine/report/confusion.hpp"
#include "engine/report/front.hpp"
#include "engine/report/report.hpp"
#include "engine/report/ways.hpp"
#include "engine/report/words.hpp"
#include "trials/pareto.hpp"

namespace hfta::engine {
namespace {

using nlohmann::ordered_json;
using trials::Trial;

ordered_json number(double value) { return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr); }

ordered_json number(const std::optional<double>& value) { return value ? number(*value) : ordered_json(nullptr); }

ordered_json to_json(const trials::ParamValue& value) {
  struct Json {
    ordered_json operator()(std::monostate) const { return nullptr; }
    ordered_json operator()(bool b) const { return b; }
    ordered_json operator()(std::int64_t i) const { return i; }
    ordered_json operator()(double d) const { return number(d); }
    ordered_json operator()(const std::string& s) const { return s; }
  };
  return std::visit(Json{}, value);
}

// Wall clocks may jump back; a duration never does.
std::optional<double> duration(const Trial& trial) {
  if (!trial.started || !trial.completed) return std::nullopt;
  return std::max(0.0, std::chrono::duration<double>(*trial.completed - *trial.started).count());
}

int last_epoch(const Trial& trial) { return trial.epochs.empty() ? 0 : trial.epochs.back().epoch; }

ordered_json to_json(const trials::Params& params) {
  ordered_json out = ordered_json::object();
  for (const auto& [name, value] : params) out[name] = to_json(value);
  return out;
}

ordered_json to_json(const ConfusionMatrix& matrix) {
  ordered_json rows = ordered_json::array();
  for (const std::vector<double>& row : matrix) {
    rows.push_back(ordered_json::array());
    for (const double count : row) rows.back().push_back(number(count));
  }
  return rows;
}

// The metrics of a trial's last epoch, without confusion matrices.
std::map<std::string, double> last_metrics(const ReportInput& input, const Trial& trial) {
  if (trial.epochs.empty()) return {};
  return split(trial.epochs.back().metrics, input.objectives.front().metric).numbers;
}

ordered_json to_json(const trials::Objectives& objectives) {
  ordered_json list = ordered_json::array();
  for (const trials::Objective& objective : objectives) {
    list.push_back({{"metric", objective.metric}, {"direction", name_of(objective.goal)}});
  }
  return list;
}

ordered_json to_json(const FrontSummary& front) {
  ordered_json numbers = ordered_json::array();
  for (const Trial* trial : front.trials) numbers.push_back(trial->number);
  return {{"trials", std::move(numbers)}, {"hypervolume", number(front.hypervolume)}, {"reference", front.reference}};
}

// Adds the values of several objectives in their order, and the test metrics, which every trial of the front has.
void add_values(const ReportInput& input, const Trial& trial, ordered_json& out) {
  ordered_json values = ordered_json::array();
  for (const double value : trial.values) values.push_back(number(value));
  out["values"] = values.empty() ? ordered_json(nullptr) : std::move(values);
  for (const auto& [name, value] : split(trial.test_metrics, input.objectives.front().metric).numbers) {
    out["metrics"][name] = number(value);
  }
}

ordered_json to_json(const ReportInput& input, const Trial& trial) {
  ordered_json metrics = ordered_json::object();
  for (const auto& [name, value] : last_metrics(input, trial)) metrics[name] = number(value);
  ordered_json out = {{"number", trial.number},         {"state", trials::name_of(trial.state)},
                      {"value", number(trial.value())}, {"params", to_json(latest_params(trial))},
                      {"epochs", last_epoch(trial)},    {"duration_s", number(duration(trial))},
                      {"metrics", std::move(metrics)}};
  for (const auto& [set, matrix] : confusion_of(input, trial)) out["confusion_matrix"][set] = to_json(matrix);
  if (input.objectives.size() > 1) add_values(input, trial, out);
  if (!trial.reason.empty()) out["reason"] = trial.reason;
  if (trial.copies.empty()) return out;
  out["drawn"] = to_json(trial.params);
  for (const trials::Copy& copy : trial.copies) {
    out["copies"].push_back({{"epoch", copy.epoch}, {"source", copy.source}, {"params", to_json(copy.params)}});
  }
  return out;
}

ordered_json to_json(const SlotUse& use) {
  return {{"busy", use.busy}, {"empty", use.empty}, {"narrowed", use.narrowed}, {"seconds", use.seconds}};
}

ordered_json to_json(const std::optional<Occupancy>& occupancy) {
  if (!occupancy) return nullptr;
  return {{"widths", {occupancy->narrowest, occupancy->widest}},
          {"filling", to_json(occupancy->filling)},
          {"drain", occupancy->drain ? to_json(*occupancy->drain) : ordered_json(nullptr)},
          {"trained_again", occupancy->trained_again},
          {"failed", occupancy->failed}};
}

ordered_json to_json(const std::vector<WayThatRan>& ways) {
  ordered_json list = ordered_json::array();
  for (const WayThatRan& way : ways) {
    list.push_back({{"lowering", way.lowering},
                    {"memory", way.memory.empty() ? ordered_json(nullptr) : ordered_json(way.memory)},
                    {"arrays", way.arrays},
                    {"held_bytes", way.held_bytes},
                    {"predicted_bytes", way.predicted_bytes}});
  }
  return list;
}

ordered_json to_json(const std::optional<Runner>& runner) {
  if (!runner) return nullptr;
  return {{"holder", runner->holder}, {"alive", runner->alive}, {"silence_s", number(runner->silence)}};
}

ordered_json to_json(const ReportInput& input, const ConfigurationRow& row) {
  ordered_json numbers = ordered_json::array();
  for (const Trial* trial : row.configuration.trials) numbers.push_back(trial->number);
  const Trial& first = *row.configuration.trials.front();
  const auto of = [&](double trials::Summary::*field) {
    return row.summary ? number((*row.summary).*field) : ordered_json(nullptr);
  };
  return {{"configuration", row.configuration.index},
          {"value", number(row.configuration.value)},
          {"mean", of(&trials::Summary::mean)},
          {"deviation", of(&trials::Summary::deviation)},
          {"low", of(&trials::Summary::low)},
          {"high", of(&trials::Summary::high)},
          {"median", of(&trials::Summary::median)},
          {"complete", row.complete},
          {"pruned", row.pruned},
          {"failed", row.failed},
          {"params", to_json(input.repetitions.configuration_of(first.params))},
          {"trials", std::move(numbers)}};
}

void add_configurations(const ReportInput& input, std::optional<int> top, ordered_json& out) {
  out["repetitions"] = {{"repeat", input.repetitions.seeds},
                        {"folds", input.repetitions.folds},
                        {"rank", trials::name_of(input.repetitions.rank)},
                        {"confidence", trials::kConfidence}};
  out["configurations"] = ordered_json::array();
  for (const ConfigurationRow& row : configuration_rows(input)) {
    if (top && std::ssize(out["configurations"]) >= *top) break;
    out["configurations"].push_back(to_json(input, row));
  }
}

std::vector<const Trial*> chosen(const ReportInput& input, std::optional<int> top) {
  if (!top) {
    std::vector<const Trial*> all;
    for (const Trial& trial : input.trials) all.push_back(&trial);
    return all;
  }
  std::vector<const Trial*> best = ranked(input.trials, input.objectives);
  best.resize(std::min(best.size(), static_cast<std::size_t>(std::max(*top, 0))));
  return best;
}

std::string dump(const ordered_json& json) {
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

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

std::string report_json(const ReportInput& input, std::optional<int> top) {
  ordered_json best = nullptr;
  if (const Trial* trial = best_of(input)) {
    best = to_json(input, *trial);
    const SplitMetrics tested = split(trial->test_metrics, input.objectives.front().metric);
    for (const auto& [name, value] : tested.numbers) best["metrics"][name] = number(value);
    for (const auto& [set, matrix] : tested.matrices) best["confusion_matrix"][set] = to_json(matrix);
  }
  ordered_json list = ordered_json::array();
  for (const Trial* trial : chosen(input, top)) list.push_back(to_json(input, *trial));
  ordered_json out = {
      {"study", input.study},
      {"metric", input.objectives.front().metric},
      {"direction", name_of(input.objectives.front().goal)},
      {"method", input.method.empty() ? ordered_json(nullptr) : ordered_json(input.method)},
      {"method_reason", input.method_reason.empty() ? ordered_json(nullptr) : ordered_json(input.method_reason)},
      {"counts", ordered_json(count_states(input.trials))},
      {"best", std::move(best)},
      {"runner", to_json(input.runner)},
      {"ended_by", input.ended_by.empty() ? ordered_json(nullptr) : ordered_json(input.ended_by)},
      {"occupancy", to_json(input.occupancy)},
      {"ways", to_json(ways_that_ran(input.arrays))}};
  if (input.objectives.size() > 1) {
    const std::optional<FrontSummary> front = front_of(input);
    out["objectives"] = to_json(input.objectives);
    out["front"] = front ? to_json(*front) : ordered_json(nullptr);
  }
  if (input.repetitions.any()) add_configurations(input, top, out);
  out["trials"] = std::move(list);
  return dump(out);
}

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

std::string studies_json(const std::vector<storage::StudySummary>& studies) {
  ordered_json list = ordered_json::array();
  for (const storage::StudySummary& s : studies) {
    list.push_back({{"study", s.name},
                    {"metric", s.objectives.front().metric},
                    {"direction", name_of(s.objectives.front().goal)},
                    {"counts", ordered_json(s.counts)},
                    {"best", number(s.best)}});
    if (s.objectives.size() > 1) list.back()["objectives"] = to_json(s.objectives);
  }
  return dump(list);
}

}  // namespace hfta::engine
