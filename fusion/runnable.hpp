#pragma once
/// Whether a graph can be trained at all.

#include <c10/core/Device.h>

#include "fusion/array.hpp"
#include "fusion/dataset.hpp"

namespace hfta::fusion {

/// What running a graph has shown.
struct Runnable {
  /// Whether evaluation's output for some sample (with a loss of the model's own: any of its outputs) was seen to
  /// change when another sample of the batch was replaced: softmax over the batch, say, or a contrastive loss. Found by
  /// exchanging the first and the last of a few samples, before and after a step.
  bool mixes_samples = false;
};

/// Runs one training step of one slot and one evaluation, on as few of the first samples of `data` as are meaningful,
/// and discards the slot: anything that training would refuse for its sizes, arguments or ops is refused here. Throws
/// Error{kConfig} with the line of the model's source, or Error{kMemory}, Error{kDevice}.
Runnable check_runnable(const Graph& graph, const Recipe& recipe, const SlotHyper& hyper, const Dataset& data,
                        const c10::Device& device);

}  // namespace hfta::fusion
