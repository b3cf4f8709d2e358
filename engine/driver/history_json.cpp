#include "engine/driver/history_json.hpp"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <variant>

namespace hfta::engine {
namespace {

using nlohmann::json;
using trials::ParamValue;

json value_json(const ParamValue& value) {
  return std::visit(
      [](const auto& one) -> json {
        if constexpr (std::is_same_v<std::decay_t<decltype(one)>, std::monostate>) {
          return nullptr;
        } else {
          return one;
        }
      },
      value);
}

ParamValue value_from(const json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_float()) return value.get<double>();
  if (value.is_number()) return value.get<std::int64_t>();
  if (value.is_null()) return {};
  return value.get<std::string>();
}

json number_json(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }
double number_from(const json& value) {
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

}  // namespace

json history_json(const search::History& history) {
  json list = json::array();
  for (const search::SeenTrial& trial : history) {
    json params = json::array(), values = json::array();
    for (const auto& [name, value] : trial.params) params.push_back(json::array({name, value_json(value)}));
    for (const double value : trial.values) values.push_back(number_json(value));
    list.push_back({{"params", std::move(params)},
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
    for (const json& pair : one.at("params")) {
      trial.params.emplace_back(pair.at(0).get<std::string>(), value_from(pair.at(1)));
    }
    for (const json& value : one.at("values")) trial.values.push_back(number_from(value));
    if (!one.at("value").is_null()) trial.value = one.at("value").get<double>();
    if (!one.at("state").is_null()) trial.ended = trials::state_from(one.at("state").get<std::string>());
    if (one.contains("others")) trial.others = one.at("others").get<std::vector<double>>();
  }
  return history;
}

}  // namespace hfta::engine
