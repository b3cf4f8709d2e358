#pragma once
/// Reads ATen's own schemas of a graph's calls: complete arguments, and which values share memory or are written.

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fusion/graph/arguments.hpp"
#include "fusion/graph/uses.hpp"
#include "fusion/op_traits.hpp"

namespace hfta::fusion {

/// Throws Error{kConfig}: where the node comes from, its path and op, and `what`.
[[noreturn]] void fail_at(const Node& node, const std::string& what);

/// The op of that name and overload; nullopt: this LibTorch has none.
[[nodiscard]] std::optional<c10::OperatorHandle> find_schema(const std::string& op);
/// The op of a node. Throws Error{kConfig} naming the node if this LibTorch has none of that name.
[[nodiscard]] c10::OperatorHandle find_op(const Node& node);

/// The graph with every call's arguments in its schema's order and complete, lists of repeated sizes written out
/// (`stride=2` of a conv2d as [2, 2]), so that a rule finds argument i where the schema has it. Throws Error{kConfig}
/// naming the node for ops that a model may not use, and for ops and arguments that this LibTorch does not know.
[[nodiscard]] Graph with_complete_arguments(Graph graph);

/// The traits of a node's op. Throws Error{kConfig} naming the node if a model may not use it.
[[nodiscard]] const OpTraits& traits_of(const Node& node);

/// Whether the op's schema has an argument of that name.
[[nodiscard]] bool has_argument(const std::string& op, std::string_view name);

/// The argument of that name of a node of with_complete_arguments; null if its op has none, or the name is "".
[[nodiscard]] const Arg* find_argument(const Node& node, std::string_view name);
[[nodiscard]] Arg* find_argument(Node& node, std::string_view name);
/// The argument that find_argument() finds. Throws Error{kConfig} naming the node if its op has none.
[[nodiscard]] const Arg& argument_of(const Node& node, std::string_view name);
[[nodiscard]] Arg& argument_of(Node& node, std::string_view name);
/// The same of this kind. Throws ArgumentError if it is of another.
template <typename T>
[[nodiscard]] const T& argument_of(const Node& node, std::string_view name) {
  return argument_as<T>(node, argument_of(node, name), name);
}

/// Whether the call takes statistics over the batch and updates running statistics in its arguments; its result does
/// not depend on the running ones.
[[nodiscard]] bool by_batch_statistics(const Node& node);

/// Values that may share memory, as sets with a representative each.
class Aliases {
 public:
  explicit Aliases(const Graph& graph);
  [[nodiscard]] ValueId set_of(ValueId value) const;

 private:
  mutable std::vector<ValueId> parent_;
};

/// Values that the call writes in place. Batch statistics count as writes of the running ones.
[[nodiscard]] std::vector<ValueId> written_by(const Node& node);

/// Whether the purpose of the call is to write an argument: relu_, copy_.
[[nodiscard]] bool writes_in_place(const Node& node);

/// Values marked by the memory they may share: marking one value marks all values that may share its memory.
class MemorySets {
 public:
  explicit MemorySets(const Graph& graph) : aliases_(graph), marked_(graph.values.size(), false) {}
  void mark(ValueId id) {
    if (id != kNoValue) marked_[static_cast<std::size_t>(aliases_.set_of(id))] = true;
  }
  [[nodiscard]] bool marked(ValueId id) const {
    return id != kNoValue && marked_[static_cast<std::size_t>(aliases_.set_of(id))];
  }
  [[nodiscard]] bool any(const std::vector<ValueId>& ids) const {
    return std::any_of(ids.begin(), ids.end(), [this](ValueId id) { return marked(id); });
  }

 private:
  Aliases aliases_;
  std::vector<bool> marked_;
};

/// Whether an output of the call may share memory with one of its inputs.
[[nodiscard]] bool makes_view(const Node& node);

}  // namespace hfta::fusion
