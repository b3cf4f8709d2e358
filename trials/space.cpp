#include "trials/space.hpp"

#include <algorithm>
#include <utility>

namespace hfta::trials {

const std::vector<DistributionInfo>& distributions() {
  using Kind = DistributionKind;
  using Fields = DistributionInfo::Fields;
  static const std::vector<DistributionInfo> table = {
      {Kind::kConstant, "constant", Fields::kValue},
      {Kind::kCategorical, "categorical", Fields::kValues},
      {Kind::kIntUniform, "int_uniform", Fields::kRange},
      {Kind::kUniform, "uniform", Fields::kRange},
      {Kind::kQUniform, "q_uniform", Fields::kRange, /*logarithmic=*/false, /*quantized=*/true},
      {Kind::kLogUniform, "log_uniform", Fields::kRange, /*logarithmic=*/true},
      {Kind::kQLogUniform, "q_log_uniform", Fields::kRange, /*logarithmic=*/true, /*quantized=*/true},
      {Kind::kLogUniformValues, "log_uniform_values", Fields::kRange, /*logarithmic=*/true},
      {Kind::kQLogUniformValues, "q_log_uniform_values", Fields::kRange, /*logarithmic=*/true, /*quantized=*/true},
      {Kind::kInvLogUniform, "inv_log_uniform", Fields::kRange, /*logarithmic=*/true},
      {Kind::kInvLogUniformValues, "inv_log_uniform_values", Fields::kRange, /*logarithmic=*/true},
      {Kind::kNormal, "normal", Fields::kNormal},
      {Kind::kQNormal, "q_normal", Fields::kNormal, /*logarithmic=*/false, /*quantized=*/true},
      {Kind::kLogNormal, "log_normal", Fields::kNormal, /*logarithmic=*/true},
      {Kind::kQLogNormal, "q_log_normal", Fields::kNormal, /*logarithmic=*/true, /*quantized=*/true}};
  return table;
}

const DistributionInfo& info_of(DistributionKind kind) { return distributions().at(static_cast<std::size_t>(kind)); }

bool is_bounded(DistributionKind kind) { return info_of(kind).fields == DistributionInfo::Fields::kRange; }
bool is_normal(DistributionKind kind) { return info_of(kind).fields == DistributionInfo::Fields::kNormal; }
bool is_logarithmic(DistributionKind kind) { return info_of(kind).logarithmic; }
bool is_quantized(DistributionKind kind) { return info_of(kind).quantized; }

const char* name_of(DistributionKind kind) { return info_of(kind).name; }

const std::vector<std::string>& distribution_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const DistributionInfo& info : distributions()) all.emplace_back(info.name);
    return all;
  }();
  return names;
}

std::optional<DistributionKind> distribution_from(const std::string& name) {
  const std::vector<std::string>& names = distribution_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<DistributionKind>(found - names.begin());
}

const ParamValue* find_value(const Params& params, const std::string& name) {
  const auto found = std::find_if(params.begin(), params.end(), [&](const auto& one) { return one.first == name; });
  return found == params.end() ? nullptr : &found->second;
}

bool is_conditional(const Space& space) {
  return std::any_of(space.begin(), space.end(), [](const Parameter& p) { return !p.when.empty(); });
}

namespace {

bool holds(const Condition& condition, const Space& space, const std::vector<bool>& active, const Params& all) {
  const ParamValue* value = find_value(all, condition.parameter);
  if (value == nullptr) return false;
  if (std::find(condition.values.begin(), condition.values.end(), *value) == condition.values.end()) return false;
  for (std::size_t i = 0; i < space.size(); ++i) {
    if (space[i].name == condition.parameter) return active[i];
  }
  return false;
}

// Finds the parameters that apply: first those without conditions, then more in each round until a round adds none.
std::vector<bool> active_ones(const Space& space, const Params& all) {
  std::vector<bool> active(space.size(), false);
  for (bool any = true; std::exchange(any, false);) {
    for (std::size_t i = 0; i < space.size(); ++i) {
      const std::vector<Condition>& when = space[i].when;
      if (active[i] || !std::all_of(when.begin(), when.end(),
                                    [&](const Condition& one) { return holds(one, space, active, all); })) {
        continue;
      }
      any = active[i] = true;
    }
  }
  return active;
}

}  // namespace

Params applying(const Space& space, const Params& all) {
  const std::vector<bool> active = active_ones(space, all);
  Params params;
  for (std::size_t i = 0; i < space.size(); ++i) {
    const ParamValue* value = find_value(all, space[i].name);
    if (active[i] && value != nullptr) params.emplace_back(space[i].name, *value);
  }
  return params;
}

void make_apply(const Space& space, const std::string& name, Params& all) {
  std::vector<std::string> names = {name};
  for (std::size_t at = 0; at < names.size(); ++at) {
    const auto parameter =
        std::find_if(space.begin(), space.end(), [&](const Parameter& one) { return one.name == names[at]; });
    for (const Condition& condition : parameter->when) {
      if (std::find(names.begin(), names.end(), condition.parameter) != names.end()) continue;
      names.push_back(condition.parameter);
      for (auto& [other, value] : all) {
        if (other == condition.parameter) value = condition.values.front();
      }
    }
  }
}

bool is_whole(const Space& space, const Params& params) {
  const std::vector<bool> active = active_ones(space, params);
  std::size_t next = 0;
  for (std::size_t i = 0; i < space.size(); ++i) {
    if (!active[i]) continue;
    if (next == params.size() || params[next].first != space[i].name) return false;
    ++next;
  }
  return next == params.size();
}

}  // namespace hfta::trials
