#pragma once
/// The parameter groups of an optimizer, as torch.optim's param_groups have them: which of a graph's parameters take
/// which numbers. Without torch.

#include <string>
#include <vector>

#include "fusion/graph.hpp"
#include "fusion/recipe.hpp"

namespace hfta::fusion {

/// Group numbers by Graph::weights: 0 where no group's pattern means the weight by any of its names, tied ones too;
/// else 1 + the index of the first group whose pattern does.
[[nodiscard]] std::vector<int> groups_of_weights(const std::vector<ParameterGroup>& groups, const Graph& graph);

/// The number of trained parameters of each group, in the same numbering.
[[nodiscard]] std::vector<std::int64_t> group_sizes(const std::vector<ParameterGroup>& groups, const Graph& graph);

/// `parameters`: all names that a model's parameters have, trained or not, tied ones too. Throws Error{kConfig} that
/// begins with the group's `where`: a pattern that means none of them (the nearest are named), and a group all of whose
/// parameters are taken by groups before it.
void check_groups(const std::vector<ParameterGroup>& groups, const std::vector<std::string>& parameters);

}  // namespace hfta::fusion
