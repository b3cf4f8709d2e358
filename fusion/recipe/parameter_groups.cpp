#include "fusion/parameter_groups.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "fusion/graph/names.hpp"

namespace hfta::fusion {
namespace {

bool has(const ParameterGroup& group, const std::string& name) {
  return std::any_of(group.params.begin(), group.params.end(),
                     [&](const std::string& pattern) { return names_parameter(pattern, name); });
}

// 0: none, else 1 + index.
int group_of(const std::vector<ParameterGroup>& groups, const std::vector<std::string>& names) {
  const auto first = std::find_if(groups.begin(), groups.end(), [&](const ParameterGroup& group) {
    return std::any_of(names.begin(), names.end(), [&](const std::string& name) { return has(group, name); });
  });
  return first == groups.end() ? 0 : 1 + static_cast<int>(first - groups.begin());
}

[[noreturn]] void fail(const ParameterGroup& group, const std::string& what) {
  throw Error(ErrorKind::kConfig, (group.where.empty() ? "" : group.where + ": ") + what);
}

}  // namespace

std::vector<int> groups_of_weights(const std::vector<ParameterGroup>& groups, const Graph& graph) {
  std::vector<int> of;
  for (const Weight& weight : graph.weights) {
    std::vector<std::string> names = weight.tied;
    names.push_back(weight.name);
    of.push_back(group_of(groups, names));
  }
  return of;
}

std::vector<std::int64_t> group_sizes(const std::vector<ParameterGroup>& groups, const Graph& graph) {
  const std::vector<int> of = groups_of_weights(groups, graph);
  std::vector<std::int64_t> sizes(groups.size() + 1);
  for (std::size_t i = 0; i < of.size(); ++i) {
    const Weight& weight = graph.weights[i];
    if (weight.trained) sizes[static_cast<std::size_t>(of[i])] += elements_of(weight.model_shape(), 1);
  }
  return sizes;
}

void check_groups(const std::vector<ParameterGroup>& groups, const std::vector<std::string>& parameters) {
  std::vector<bool> used(groups.size() + 1);
  for (const std::string& name : parameters) used[static_cast<std::size_t>(group_of(groups, {name}))] = true;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const std::string& pattern : groups[g].params) {
      const bool means_one = std::any_of(parameters.begin(), parameters.end(),
                                         [&](const std::string& name) { return names_parameter(pattern, name); });
      if (means_one) continue;
      fail(groups[g],
           fmt::format("found no parameter '{}'{}", printable(pattern), hint(pattern, with_modules(parameters))));
    }
    if (!used[g + 1]) {
      fail(groups[g], fmt::format("found only parameters that groups before it have, wanted one more: {}",
                                  printable(join(groups[g].params))));
    }
  }
}

}  // namespace hfta::fusion
