#include "engine/params_json.hpp"

#include <nlohmann/json.hpp>
#include <type_traits>
#include <variant>

namespace hfta::engine {
namespace {

using nlohmann::json;
using trials::ParamValue;

ParamValue value_from(const json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_float()) return value.get<double>();
  if (value.is_number()) return value.get<std::int64_t>();
  if (value.is_null()) return {};
  return value.get<std::string>();
}

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

json params_json(const trials::Params& params) {
  json list = json::array();
  for (const auto& [name, value] : params) list.push_back(json::array({name, value_json(value)}));
  return list;
}

trials::Params params_from(const json& list) {
  trials::Params params;
  for (const json& pair : list) params.emplace_back(pair.at(0).get<std::string>(), value_from(pair.at(1)));
  return params;
}

}  // namespace hfta::engine
