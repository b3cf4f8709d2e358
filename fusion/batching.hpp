#pragma once
/// What of a model runs without a batching rule of its own.

#include <string>
#include <utility>
#include <vector>

#include "fusion/graph.hpp"

namespace hfta::fusion {

/// Ops of slots' own values that no rule is for, which run through LibTorch's batching where slots run together: name
/// and the first place in the model's source. Throws Error{kConfig} for ops that LibTorch does not have.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> ops_without_rule(const Graph& graph);

}  // namespace hfta::fusion
