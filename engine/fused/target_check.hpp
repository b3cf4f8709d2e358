#pragma once
/// Checks that the targets of a task fit its loss and its model's output.

#include "engine/config.hpp"
#include "fusion/dataset.hpp"

namespace hfta::engine {

/// All checks throw Error{kConfig} with the place in the config. `part`: "training", for messages.
void check_target_shape(const TaskSpec& spec, const fusion::Graph& graph, const fusion::Dataset& data);
void check_targets(const TaskSpec& spec, const fusion::Graph& graph, const fusion::Dataset& data, const char* part);
/// A batch of a model that takes one size only is filled up in evaluation. What depends on a batch as a whole would
/// depend on what it was filled up with: the loss of a model that gives one number for a batch; where `mixes_samples`
/// (fusion/runnable.hpp), outputs.
void check_whole_batches(const TaskSpec& spec, const fusion::Graph& graph, const fusion::Dataset& data,
                         const char* part, bool mixes_samples = false);

}  // namespace hfta::engine
