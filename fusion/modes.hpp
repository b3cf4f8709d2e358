#pragma once
/// Whether evaluation can be derived from a graph: a training graph has only the branch of `if self.training` that was
/// traced, not the other one.

#include <string>

#include "fusion/graph.hpp"

namespace hfta::fusion {

/// The reason why evaluation may compute something else than the passes (passes/specialize.hpp) derive from the graph:
/// the place in the user's source and its op; "" if there is none. For a graph that has its own evaluation: the reason
/// why that one cannot be run without changes. Throws Error{kConfig} for ops that LibTorch does not have.
///
/// Accepted are dropout in PyTorch's forms, hand-written dropout and stochastic depth (passes/masks.hpp), batch and
/// instance norm with their statistics, and RReLU. Reported are a parameter or buffer that anything else writes, other
/// random tensors, and other ops that take a training flag. Code that leaves no trace in the graph (`x * 2 if
/// self.training else x`) is not detected.
[[nodiscard]] std::string doubt_of_evaluation(const Graph& graph);

/// A random op that has no mean that could replace it in evaluation: randint, randperm, multinomial; reported as
/// above.
[[nodiscard]] std::string drawn_in_evaluation(const Graph& graph);

}  // namespace hfta::fusion
