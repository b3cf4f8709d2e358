#pragma once
/// Differences between the graphs of a step's phases.

#include "fusion/graph.hpp"

namespace hfta::fusion {

/// Modules that the objective does not depend on write no buffers, as batch norms do running statistics and counts of
/// batches: the phase whose loss they are part of updates them. `graph`: of with_complete_arguments, with an objective.
[[nodiscard]] Graph with_statistics_of_objective(Graph graph);

}  // namespace hfta::fusion
