#pragma once
/// Cutting a part for a library out of a graph that is being compiled.

#include <vector>

#include "fusion/cpu/library.hpp"
#include "fusion/cpu/ops.hpp"

namespace hfta::fusion::cpu {

/// The node with the numbers that it reads written out. Throws Error{kConfig} where one is not known.
[[nodiscard]] Node with_literals(const LoweringContext& site);

/// The nodes, in ascending order, as a graph of their own, whose weights are `read` and whose outputs are `given`.
/// Throws Error{kConfig} naming a call that cannot be part of one.
[[nodiscard]] PartGraph part_graph(Builder& b, const std::vector<std::size_t>& nodes, const std::vector<ValueId>& read,
                                   const std::vector<ValueId>& given);

}  // namespace hfta::fusion::cpu
