#pragma once
/// Whether a graph says what evaluation computes: what a model does under `if self.training` leaves a training graph
/// without the other branch.

#include <string>

#include "fusion/graph.hpp"

namespace hfta::fusion {

/// Why evaluation may be another computation than the passes (passes/specialize.hpp) make of the graph: the place in
/// the user's source and what stands there; "" if there is no reason to think so. A graph that has its own evaluation:
/// why that one cannot be run as it stands. Throws Error{kConfig} for ops that LibTorch does not have.
///
/// Known are dropout in PyTorch's forms, dropout and stochastic depth by hand (passes/masks.hpp), batch and instance
/// norm with their statistics, and RReLU. Doubted are a parameter or buffer that anything else writes, other random
/// tensors, and other ops that take a flag of training. What leaves no trace (`x * 2 if self.training else x`) is not
/// seen.
[[nodiscard]] std::string doubt_of_evaluation(const Graph& graph);

/// What draws at random and has no mean that could stand for it in evaluation: randint, randperm, multinomial; as
/// above.
[[nodiscard]] std::string drawn_in_evaluation(const Graph& graph);

}  // namespace hfta::fusion
