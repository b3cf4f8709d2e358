#pragma once
/// Whether a graph can be trained at all, without its weights.

#include <c10/core/Device.h>

#include "fusion/graph.hpp"

namespace hfta::fusion {

/// Throws what Array's constructor would: Error{kConfig} if the graph has an op that cannot be run on the device.
void check_runnable(const Graph& graph, const c10::Device& device);

}  // namespace hfta::fusion
