#include "engine/driver/study/history_json.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "engine/params_json.hpp"
#include "trials/json.hpp"

namespace hfta::engine {
namespace {

using nlohmann::json;

json numbers_json(const std::vector<double>& values) {
  json list = json::array();
  for (const double value : values) list.push_back(trials::number_json(value));
  return list;
}

std::vector<double> numbers_from(const json& list) {
  std::vector<double> values;
  for (const json& value : list) values.push_back(trials::number_from(value));
  return values;
}

}  // namespace

json history_json(const search::History& history) {
  json list = json::array();
  for (const search::SeenTrial& trial : history) {
    const std::optional<double> value = trial.value();
    list.push_back({{"params", params_json(trial.params)},
                    {"values", numbers_json(trial.curve)},
                    {"value", value && !std::isnan(*value) ? trials::number_json(*value) : json(nullptr)},
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
    if (!one.at("value").is_null()) trial.values = {trials::number_from(one.at("value"))};
    if (!one.at("state").is_null()) trial.ended = trials::state_from(one.at("state").get<std::string>());
    if (trial.values.empty() || !one.contains("others")) continue;
    for (const double value : numbers_from(one.at("others"))) trial.values.push_back(value);
  }
  return history;
}

}  // namespace hfta::engine
