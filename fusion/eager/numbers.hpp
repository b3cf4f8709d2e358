#pragma once
/// The few ops on numbers that sizes are computed with: Node::op "number::...".

#include <ATen/core/ivalue.h>

#include <span>
#include <vector>

#include "fusion/graph.hpp"

namespace hfta::fusion {

/// The number that the node gives, as Python would. `slotwise`: by ValueId, tensors with a slot dimension that the
/// model does not know of (none where the graph runs for one slot). Throws Error{kConfig} for an op that is none of
/// them.
[[nodiscard]] c10::IValue number_of(const Node& node, std::span<const c10::IValue> values,
                                    const std::vector<bool>& slotwise);

}  // namespace hfta::fusion
