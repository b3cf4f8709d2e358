#pragma once
/// Do model, data and loss of a task fit each other?

#include "engine/config.hpp"
#include "fusion/dataset.hpp"
#include "fusion/graph.hpp"

namespace hfta::engine {

/// A sample's shape behind the batch: [N, ...].
[[nodiscard]] fusion::Shape with_batch(const fusion::Shape& sample);

/// Throws Error{kConfig} naming the place: labels outside the classes the model has, an output shape that is not the
/// target's, a last batch of one sample under batch norm, a batch larger than the data with drop_last, a warm-up
/// of more steps than training has.
void check_task(const TaskSpec& spec, const fusion::Graph& graph, const fusion::Splits& splits);

}  // namespace hfta::engine
