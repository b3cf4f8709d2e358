#pragma once
/// The ops of a model that run without a batching rule of their own.

#include <string>
#include <utility>
#include <vector>

#include "fusion/graph.hpp"

namespace hfta::fusion {

/// Ops on slotwise values that have no rule; they run through LibTorch's batching if slots run together. Each with its
/// name and its first place in the model's source. Throws Error{kConfig} for ops that LibTorch does not have.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> ops_without_rule(const Graph& graph);

}  // namespace hfta::fusion
