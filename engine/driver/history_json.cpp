#include "engine/driver/history_json.hpp"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "engine/params_json.hpp"

namespace hfta::engine {
namespace {

using nlohmann::json;

// JSON has no word for a number that is not finite.
json number_json(double value) {
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return std::isnan(value) ? json(nullptr) : json(value);
}
double number_from(const json& value) {
  if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
  if (value == "Infinity" || value == "-Infinity") {
    const double infinity = std::numeric_limits<double>::infinity();
    return value == "Infinity" ? infinity : -infinity;
  }
  return value.get<double>();
}

json numbers_json(const std::vector<double>& values) {
  json list = json::array();
  for (const double value : values) list.push_back(number_json(value));
  return list;
}

std::vector<double> numbers_from(const json& list) {
  std::vector<double> values;
  for (const json& value : list) values.push_back(number_from(value));
  return values;
}

}  // namespace

json history_json(const search::History& history) {
  json list = json::array();
  for (const search::SeenTrial& trial : history) {
    list.push_back({{"params", params_json(trial.params)},
                    {"values", numbers_json(trial.curve)},
                    {"value", trial.value() ? number_json(*trial.value()) : json(nullptr)},
                    {"state", trial.ended ? json(trials::name_of(*trial.ended)) : json(nullptr)}});
    if (trial.values.size() > 1) list.back()["others"] = numbers_json({trial.values.begin() + 1, trial.values.end()});
  }
  return list;
}

search::History history_from(const json& list) {
  search::History history;
  for (const json& one : list) {
    search::SeenTrial& trial = history.emplace_back();
    trial.params = params_from(one.at("params"));
    trial.curve = numbers_from(one.at("values"));
    if (!one.at("value").is_null()) trial.values = {number_from(one.at("value"))};
    if (!one.at("state").is_null()) trial.ended = trials::state_from(one.at("state").get<std::string>());
    if (trial.values.empty() || !one.contains("others")) continue;
    for (const double value : numbers_from(one.at("others"))) trial.values.push_back(value);
  }
  return history;
}

}  // namespace hfta::engine
