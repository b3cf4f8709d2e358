#pragma once
/// What calls read and make, told from their arguments and outputs alone.

#include <algorithm>
#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "fusion/graph.hpp"

namespace hfta::fusion {

/// "number::add" and its like, which are no ops of ATen.
[[nodiscard]] inline bool is_number_op(const std::string& op) { return op.starts_with("number::"); }

/// Calls visit(ValueId&) for every value that the argument (`Arg` or `const Arg`) names.
template <typename AnyArg, typename Visit>
void for_each_value(AnyArg& arg, Visit visit) {
  const auto see = [&](auto& id) {
    if (id != kNoValue) visit(id);
  };
  if (auto* id = std::get_if<ValueId>(&arg)) see(*id);
  if (auto* ids = std::get_if<std::vector<ValueId>>(&arg)) {
    for (auto& id : *ids) see(id);
  }
  if (auto* sizes = std::get_if<std::vector<Size>>(&arg)) {
    for (auto& size : *sizes) see(size.value);
  }
}

/// The values that a call reads.
[[nodiscard]] inline std::vector<ValueId> inputs_of(const Node& node) {
  std::vector<ValueId> out;
  for (const Arg& arg : node.args) for_each_value(arg, [&](ValueId id) { out.push_back(id); });
  return out;
}

/// Whether an argument is a hyperparameter, which may differ between slots.
[[nodiscard]] inline bool has_hyper(const Node& node) {
  return std::any_of(node.args.begin(), node.args.end(),
                     [](const Arg& arg) { return std::holds_alternative<HyperRef>(arg); });
}

inline constexpr std::size_t kNobody = -1;

/// By value: the position of the call that makes it, the last one where several name it as theirs; `kNobody`: no call
/// does (a weight, an input).
[[nodiscard]] inline std::vector<std::size_t> makers_of(const Graph& graph) {
  std::vector<std::size_t> makers(graph.values.size(), kNobody);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const ValueId id : graph.nodes[i].outputs) {
      if (id != kNoValue) makers[static_cast<std::size_t>(id)] = i;
    }
  }
  return makers;
}

}  // namespace hfta::fusion
