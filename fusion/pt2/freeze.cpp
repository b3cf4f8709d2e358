#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "fusion/pt2/archive.hpp"
#include "fusion/pt2/names.hpp"
#include "fusion/pt2/options.hpp"

namespace hfta::fusion::pt2 {
namespace {

// A module's path stands for all that is below it.
bool names_parameter(const std::string& pattern, const std::string& name) {
  return matches(pattern, name) || matches(pattern + ".*", name);
}

std::vector<std::string> with_modules(const std::vector<std::string>& names) {
  std::set<std::string> all;
  for (const std::string& name : names) {
    all.insert(name);
    for (std::size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
      all.insert(name.substr(0, dot));
    }
  }
  return {all.begin(), all.end()};
}

}  // namespace

void freeze(Graph& graph, const std::vector<std::string>& patterns, const std::vector<std::string>& names,
            const std::string& where) {
  for (const std::string& pattern : patterns) {
    const auto is_meant = [&](const std::string& name) { return names_parameter(pattern, name); };
    if (std::none_of(names.begin(), names.end(), is_meant)) {
      fail(where, fmt::format("found no parameter '{}' to freeze{}", pattern, hint(pattern, with_modules(names))));
    }
    for (Weight& weight : graph.weights) {
      const bool tied = std::any_of(weight.tied.begin(), weight.tied.end(), is_meant);
      if (is_meant(weight.name) || tied) weight.trained = false;
    }
  }
}

}  // namespace hfta::fusion::pt2
