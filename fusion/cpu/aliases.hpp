#pragma once
/// Finds values of a graph that may share memory, by op_traits alone: without schemas, so it names rather too many.

#include <cstddef>
#include <optional>
#include <set>
#include <vector>

#include "fusion/graph.hpp"

namespace hfta::fusion::cpu {

/// Whether the op writes into its first argument: "aten::relu_", "aten::add_.Tensor".
[[nodiscard]] bool overwrites(const std::string& op);
/// The value that the node overwrites; kNoValue: none.
[[nodiscard]] ValueId written_by(const Node& node);
/// Whether an output of the op may share memory with its first argument. A copy does, too: as long as nothing is
/// overwritten, its compiler takes the same memory.
[[nodiscard]] bool may_share(const std::string& op);

/// By value: one value of all those that may share memory with it, the same for each of them.
[[nodiscard]] std::vector<ValueId> memory_of(const Graph& graph);
/// The values that may share memory with `id` through the nodes before `end`.
[[nodiscard]] std::set<ValueId> sharing_memory(const Graph& graph, ValueId id, std::size_t end);

/// Whether the memory that an overwriting node writes into is seen by anybody but through the node's output: it is read
/// afterwards, or by way of a view, or belongs to a weight or an input.
[[nodiscard]] bool seen_later(const Graph& graph, std::size_t node);

/// Nodes from the first that gives a value which may share memory with what `node` writes, to the last that writes one
/// in place. Run by one library that knows views, they do what the graph says.
struct NodeRange {
  std::size_t first = 0, last = 0;
};
[[nodiscard]] NodeRange range_of_writes(const Graph& graph, std::size_t node);

}  // namespace hfta::fusion::cpu
