#pragma once
/// Simulates when tasks run that compete for resources, and the memory that they hold meanwhile.

#include <vector>

#include "engine/planner/tasks.hpp"

namespace hfta::engine::planner {

struct Span {
  double begin = 0, end = 0;  ///< Seconds.
};

struct Timeline {
  std::vector<Span> spans;   ///< Time span of each task.
  double seconds = 0;        ///< When the last task ends.
  std::vector<double> peak;  ///< By device, in bytes: the most that was held at once.
};

/// By task: rank(o) = p_o + the highest rank of what waits for o (HeteroG, section 4.2): how long the step lasts at
/// least from its begin on.
[[nodiscard]] std::vector<double> ranks_of(const TaskGraph& graph);

/// List scheduling: whenever something ends, the tasks that are ready and whose resources are all free begin, those of
/// higher rank first, then those of lower number. Nothing is interrupted. A task that holds a link keeps others off it,
/// so that what shares a link takes turns. What a task makes is allocated when it begins, and freed by counts of
/// references; memory is recorded and never waited for. Deterministic.
[[nodiscard]] Timeline simulate(const TaskGraph& graph);

}  // namespace hfta::engine::planner
