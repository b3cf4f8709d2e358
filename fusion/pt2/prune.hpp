#pragma once
/// Removes results that a graph computes and nothing reads.

#include <vector>

#include "fusion/graph.hpp"

namespace hfta::fusion::pt2 {

/// Takes away numbers that are not used (asserts were all that did), and gives outputs of calls with several that are
/// not used no value. `kept` are used from outside.
void drop_unused(Graph& graph, const std::vector<ValueId>& kept);

}  // namespace hfta::fusion::pt2
