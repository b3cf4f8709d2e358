#pragma once
/// What a model's own mean loss was divided by.

#include "fusion/recipe/graph_writer.hpp"

namespace hfta::fusion {

/// Adds the weight of the batch's mean `loss`, a number, where the graph tells it: of a mean cross entropy, or negative
/// log-likelihood, over classes, the number of targets that are not ignored. kNoValue where it does not: of another
/// loss, or one with weights of classes.
[[nodiscard]] ValueId add_mean_weight(GraphWriter& graph, ValueId loss);

}  // namespace hfta::fusion
