#pragma once
/// Training and evaluation: two readings of one graph.

#include <vector>

#include "fusion/graph.hpp"

namespace hfta::fusion {

/// A graph with the nodes that matter to its output and its buffers, complete in arguments.
struct SpecializedGraph {
  Graph graph;
  std::vector<int> index;  ///< Position that each node has in the model's graph: the key of its randomness.
};

/// `graph`: of with_complete_arguments. Keeps what the output needs and what writes buffers.
[[nodiscard]] SpecializedGraph specialized_for_training(const Graph& graph);

/// The graph's own evaluation as it stands, without its writes to buffers; where it has none, a reading of the graph
/// itself: flags of dropout, batch norm, recurrent layers and attention are turned off, buffers are not written, and
/// random tensors stand at their mean: bernoulli(p) is p, a normal tensor its mean, a uniform one the middle of its
/// range; floor(p + uniform) is p. So inverted dropout written by hand, as stochastic depth is, becomes the identity.
[[nodiscard]] SpecializedGraph specialized_for_evaluation(const Graph& graph);

/// Whether the node draws random numbers.
[[nodiscard]] bool draws(const Node& node);

/// Whether what the node draws is dropout's and its like, which PyTorch's layers turn off in evaluation.
[[nodiscard]] bool turned_off(const Node& node);

}  // namespace hfta::fusion
