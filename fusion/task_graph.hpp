#pragma once
/// The graph that an array trains and evaluates: a model's graph with its loss. Without torch.

#include "fusion/graph.hpp"
#include "fusion/recipe.hpp"

namespace hfta::fusion {

/// Adds the recipe's loss to a model's graph, and to its evaluation if it has one.
///
/// A built-in loss takes the first output and the targets, which become the last input. Its numbers become the last of
/// Graph::hypers, in the order of its row. Evaluation gives, as Graph::outputs: the output; the loss of every element
/// or position, not reduced; and, if `counts_positions` says so, each position's weight.
///
/// A loss of the model is its first output: the batch's mean loss as a number, or the loss of every sample or element,
/// whose mean is taken. With LossOptions::weighted the second output is what that mean is divided by: one number, or
/// one for each element of the loss, by which it is then multiplied, too. Without it, a mean cross entropy over classes
/// was divided by the number of targets that are not ignored, which the graph then counts. Evaluation gives the loss,
/// its weight if it has one, and the outputs that Recipe::terms name.
///
/// With Recipe::phases the loss is that of `phase`; what evaluation gives is the same for all.
///
/// Throws Error{kConfig} for outputs that the loss cannot take.
[[nodiscard]] Graph with_loss(Graph model, const Recipe& recipe, std::size_t phase = 0);

/// Samples of a batch of the graph: Graph::fixed_batch, or the recipe's.
[[nodiscard]] std::int64_t training_batch(const Graph& graph, const Recipe& recipe);

/// Whether the positions of a batch count by weights (classes: some may be ignored, or weigh less), and not alike.
[[nodiscard]] bool counts_positions(Loss loss);

}  // namespace hfta::fusion
