// Reports as JSON.

#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/report/configurations.hpp"
#include "engine/report/confusion.hpp"
#include "engine/report/front.hpp"
#include "engine/report/report.hpp"
#include "engine/report/rows.hpp"
#include "engine/report/ways.hpp"
#include "trials/json.hpp"
#include "trials/pareto.hpp"

namespace hfta::engine {
namespace {

using nlohmann::ordered_json;
using trials::Trial;

ordered_json number(double value) { return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr); }

ordered_json number(const std::optional<double>& value) { return value ? number(*value) : ordered_json(nullptr); }

ordered_json to_json(const ConfusionMatrix& matrix) {
  ordered_json rows = ordered_json::array();
  for (const std::vector<double>& row : matrix) {
    rows.push_back(ordered_json::array());
    for (const double count : row) rows.back().push_back(number(count));
  }
  return rows;
}

ordered_json to_json(const FrontSummary& front) {
  ordered_json numbers = ordered_json::array();
  for (const Trial* trial : front.trials) numbers.push_back(trial->number);
  return {{"trials", std::move(numbers)}, {"hypervolume", number(front.hypervolume)}, {"reference", front.reference}};
}

// Adds the values of several objectives in their order.
void add_values(const Trial& trial, ordered_json& out) {
  ordered_json values = ordered_json::array();
  for (const double value : trial.values) values.push_back(number(value));
  out["values"] = values.empty() ? ordered_json(nullptr) : std::move(values);
}

ordered_json to_json(const ReportInput& input, const Trial& trial) {
  ordered_json metrics = ordered_json::object();
  for (const auto& [name, value] : last_metrics(input, trial)) metrics[name] = number(value);
  ordered_json out = {{"number", trial.number},         {"state", trials::name_of(trial.state)},
                      {"value", number(trial.value())}, {"params", trials::values_by_name(latest_params(trial))},
                      {"epochs", last_epoch(trial)},    {"duration_s", number(duration(trial))},
                      {"metrics", std::move(metrics)}};
  for (const auto& [set, matrix] : confusion_of(input, trial)) out["confusion_matrix"][set] = to_json(matrix);
  if (input.objectives.size() > 1) add_values(trial, out);
  if (!trial.reason.empty()) out["reason"] = trial.reason;
  if (trial.copies.empty()) return out;
  out["drawn"] = trials::values_by_name(trial.params);
  for (const trials::Copy& copy : trial.copies) {
    out["copies"].push_back(
        {{"epoch", copy.epoch}, {"source", copy.source}, {"params", trials::values_by_name(copy.params)}});
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
          {"params", trials::values_by_name(input.repetitions.configuration_of(first.params))},
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

std::string dump(const ordered_json& json) {
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
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
    out["objectives"] = trials::objectives_json(input.objectives);
    out["front"] = front ? to_json(*front) : ordered_json(nullptr);
  }
  if (input.repetitions.any()) add_configurations(input, top, out);
  out["trials"] = std::move(list);
  return dump(out);
}

std::string studies_json(const std::vector<storage::StudySummary>& studies) {
  ordered_json list = ordered_json::array();
  for (const storage::StudySummary& s : studies) {
    list.push_back({{"study", s.name},
                    {"metric", s.objectives.front().metric},
                    {"direction", name_of(s.objectives.front().goal)},
                    {"counts", ordered_json(s.counts)},
                    {"best", number(s.best)}});
    if (s.objectives.size() > 1) list.back()["objectives"] = trials::objectives_json(s.objectives);
  }
  return dump(list);
}

}  // namespace hfta::engine
