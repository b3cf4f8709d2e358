#include "engine/params_json.hpp"

#include <nlohmann/json.hpp>

#include "trials/json.hpp"

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

json params_json(const trials::Params& params) {
  json list = json::array();
  for (const auto& [name, value] : params) list.push_back(json::array({name, trials::value_json(value)}));
  return list;
}

trials::Params params_from(const json& list) {
  trials::Params params;
  for (const json& pair : list) params.emplace_back(pair.at(0).get<std::string>(), value_from(pair.at(1)));
  return params;
}

}  // namespace hfta::engine
