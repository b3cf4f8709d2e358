#pragma once
/// Differences between the graphs of a step's phases.

#include "fusion/graph.hpp"

namespace hfta::fusion {

/// Batch norms that the objective does not depend on keep no running statistics: the phase whose loss they are part of
/// updates them. `graph`: of with_complete_arguments, with an objective.
[[nodiscard]] Graph with_statistics_of_objective(Graph graph);

}  // namespace hfta::fusion
