#include <fmt/format.h>

#include <algorithm>

#include "fusion/graph/names.hpp"
#include "fusion/pt2/archive.hpp"
#include "fusion/pt2/options.hpp"

namespace hfta::fusion::pt2 {

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
