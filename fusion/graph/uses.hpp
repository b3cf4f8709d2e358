#pragma once
/// What a call reads, told from its arguments alone.

#include <string>
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

}  // namespace hfta::fusion
