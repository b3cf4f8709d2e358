#include "trials/json.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <variant>

#include "base/error.hpp"
#include "base/text.hpp"

namespace hfta::trials {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kNonFinite = "float";
constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

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

ordered_json values_by_name(const Params& params) {
  ordered_json all = ordered_json::object();
  for (const auto& [name, value] : params) all[name] = value_json(value);
  return all;
}

json number_json(double value) { return std::isfinite(value) ? json(value) : json{{kNonFinite, shortest(value)}}; }

std::optional<double> non_finite_from(const json& value) {
  if (!value.is_object() || value.size() != 1 || !value.contains(kNonFinite) || !value[kNonFinite].is_string()) {
    return std::nullopt;
  }
  const auto word = value[kNonFinite].get<std::string>();
  if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (word == "inf") return kInfinity;
  if (word == "-inf") return -kInfinity;
  throw Error(ErrorKind::kStorage, fmt::format("number: found '{}', wanted nan, inf or -inf", printable(word)));
}

double number_from(const json& value) {
  if (const std::optional<double> number = non_finite_from(value)) return *number;
  if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
  if (value == "Infinity") return kInfinity;
  if (value == "-Infinity") return -kInfinity;
  return value.get<double>();
}

ordered_json objectives_json(const Objectives& objectives) {
  ordered_json all = ordered_json::array();
  for (const Objective& objective : objectives) {
    all.push_back({{"metric", objective.metric}, {"direction", name_of(objective.goal)}});
  }
  return all;
}

}  // namespace hfta::trials
