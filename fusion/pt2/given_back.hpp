#pragma once
/// Calls that give back the very tensor that they are given.

#include <vector>

#include "fusion/graph.hpp"

namespace hfta::fusion::pt2 {

/// Whether PyTorch's op returns its first argument itself for these arguments: a conversion to the type that it has,
/// dropout that is off. A gradient then goes through under torch.no_grad(), too, as there was no call to record.
[[nodiscard]] bool gives_back_its_input(const Graph& graph, const Node& node);

/// By output of an op of a list of tensors: the tensor of the list that PyTorch's op returns as this output, or
/// kNoValue. `broadcast_tensors` returns those that have the sizes already. Empty: the op is none of these.
[[nodiscard]] std::vector<ValueId> tensors_given_back(const Graph& graph, const Node& node);

}  // namespace hfta::fusion::pt2
