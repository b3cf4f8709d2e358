#pragma once
/// Finds the divisor of a model's own mean loss.

#include "fusion/recipe/graph_writer.hpp"

namespace hfta::fusion {

/// Adds the weight of every position of `target`, integers [N, ...]: 1, or its class's of `class_weight`, [C]
/// (kNoValue: there is none); 0 where the target is `ignored`.
[[nodiscard]] ValueId position_weight(GraphWriter& graph, ValueId target, const Arg& ignored, ValueId class_weight);

/// Adds the weight of the batch's mean `loss`, of one element, where the graph tells it: of a mean cross entropy, or
/// negative log-likelihood, over classes, the sum of position_weight(). The loss may be such a mean times, or added to,
/// what no sample changes, or a sum of such means over the same targets. kNoValue: it is something else.
[[nodiscard]] ValueId add_mean_weight(GraphWriter& graph, ValueId loss);

}  // namespace hfta::fusion
