#pragma once
/// Finds values of a training graph that the same calls compute in the graph of its evaluation.

#include <vector>

#include "fusion/graph.hpp"

namespace hfta::fusion {

/// By value of `training`: the value of `evaluation` that the same calls with the same arguments make of the same
/// inputs and weights; kNoValue: none. Constants are the same if they hold the same. Calls that draw numbers or write
/// are like no other. The graphs are of with_complete_arguments, with the same inputs and weights in the same order.
[[nodiscard]] std::vector<ValueId> same_values(const Graph& training, const Graph& evaluation);

}  // namespace hfta::fusion
