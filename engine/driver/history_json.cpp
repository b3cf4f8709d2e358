#include "engine/driver/history_json.hpp"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/params_json.hpp"

namespace hfta::engine {
namespace {

using nlohmann::json;

json number_json(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }
double number_from(const json& value) {
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

}  // namespace

json history_json(const search::History& history) {
  json list = json::array();
  for (const search::SeenTrial& trial : history) {
    json values = json::array();
    for (const double value : trial.values) values.push_back(number_json(value));
    list.push_back({{"params", params_json(trial.params)},
                    {"values", std::move(values)},
                    {"value", trial.value ? number_json(*trial.value) : json(nullptr)},
                    {"state", trial.ended ? json(trials::name_of(*trial.ended)) : json(nullptr)}});
    if (!trial.others.empty()) list.back()["others"] = trial.others;
  }
  return list;
}

search::History history_from(const json& list) {
  search::History history;
  for (const json& one : list) {
    search::SeenTrial& trial = history.emplace_back();
    trial.params = params_from(one.at("params"));
    for (const json& value : one.at("values")) trial.values.push_back(number_from(value));
    if (!one.at("value").is_null()) trial.value = one.at("value").get<double>();
    if (!one.at("state").is_null()) trial.ended = trials::state_from(one.at("state").get<std::string>());
    if (one.contains("others")) trial.others = one.at("others").get<std::vector<double>>();
  }
  return history;
}

}  // namespace hfta::engine
