#pragma once
/// Training and evaluation: two readings of one graph, and what of a reading differs between slots.

#include <vector>

#include "fusion/graph.hpp"

namespace hfta::fusion {

/// A graph with the nodes that matter to its output and its buffers, complete in arguments.
struct Reading {
  Graph graph;
  std::vector<int> index;  ///< Position that each node has in the model's graph: the key of its randomness.
};

/// `graph`: of with_complete_arguments. Keeps what the output needs and what writes buffers.
[[nodiscard]] Reading training_reading(const Graph& graph);

/// Flags of dropout, batch norm, recurrent layers and attention are turned off, buffers are not written, and random
/// tensors stand at their mean: bernoulli(p) is p, a normal tensor its mean, a uniform one the middle of its range;
/// floor(p + uniform) is p. So inverted dropout written by hand, as stochastic depth is, becomes the identity.
[[nodiscard]] Reading evaluation_reading(const Graph& graph);

/// Whether the node draws random numbers.
[[nodiscard]] bool draws(const Node& node);

/// By Graph::weights: whether slots own it, because it is trained (and the output's gradient reaches it) or written
/// while training.
[[nodiscard]] std::vector<bool> owned_weights(const Reading& training);

/// Batch norm of values that slots share, by the batch's statistics, becomes one that is computed once and an update of
/// each slot's own running statistics.
[[nodiscard]] Reading with_shared_statistics(Reading training, const std::vector<bool>& owned);

/// What of a reading differs between slots.
struct Sharing {
  std::vector<bool> slotwise;  ///< By value: tensors that each slot has its own of.
  /// By value: computed after the slots part ways. Numbers and constants can be late without being slotwise.
  std::vector<bool> late;
  std::vector<bool> from_data;  ///< By value: tensors that depend on the samples.
  std::vector<bool> written;    ///< By value: some node writes its memory.
};

[[nodiscard]] Sharing sharing_of(const Reading& reading, const std::vector<bool>& owned);

}  // namespace hfta::fusion
