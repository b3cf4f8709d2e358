// Ops that overwrite their first argument. Compiled as their plain forms, into memory of their own, wherever nobody can
// tell the difference.
#include <algorithm>
#include <set>

#include "fusion/cpu/ops.hpp"
#include "fusion/graph/uses.hpp"
#include "fusion/op_traits.hpp"

namespace hfta::fusion::cpu {
namespace {

const std::set<std::string>& views() {
  static const std::set<std::string> names = [] {
    std::set<std::string> all = {"aten::dropout"};  // which may be the identity
    for (auto* family : {&shape_ops, &select_ops}) {
      for (const NamedCompiler& op : (*family)()) all.insert(op.op);
    }
    return all;
  }();
  return names;
}

// The values that may share memory with `id` before node `end` runs.
std::set<ValueId> sharing_memory(const Graph& graph, ValueId id, std::size_t end) {
  std::vector<ValueId> leader(graph.values.size());
  for (std::size_t v = 0; v < leader.size(); ++v) leader[v] = static_cast<ValueId>(v);
  for (std::size_t i = 0; i < end; ++i) {
    const Node& node = graph.nodes[i];
    if (node.outputs.empty() || (!views().contains(node.op) && !overwrites(node.op))) continue;
    const auto* from = node.args.empty() ? nullptr : std::get_if<ValueId>(&node.args[0]);
    if (from == nullptr) continue;
    for (const ValueId output : node.outputs) {
      if (output != kNoValue) leader[static_cast<std::size_t>(output)] = leader[static_cast<std::size_t>(*from)];
    }
  }
  std::set<ValueId> out;
  for (std::size_t v = 0; v < leader.size(); ++v) {
    if (leader[v] == leader[static_cast<std::size_t>(id)]) out.insert(static_cast<ValueId>(v));
  }
  return out;
}

}  // namespace

bool overwrites(const std::string& op) {
  const OpTraits* traits = op_traits(op);
  return traits != nullptr && traits->in_place;
}

bool seen_later(const Graph& graph, std::size_t node) {
  const auto* written = std::get_if<ValueId>(&graph.nodes[node].args.at(0));
  if (written == nullptr) return true;
  const std::set<ValueId> shared = sharing_memory(graph, *written, node);
  const auto lives_on = [&](ValueId id) { return shared.contains(id); };
  if (std::any_of(graph.outputs.begin(), graph.outputs.end(), lives_on) ||
      std::any_of(graph.inputs.begin(), graph.inputs.end(), lives_on)) {
    return true;
  }
  for (const Weight& weight : graph.weights) {
    if (lives_on(weight.value)) return true;
  }
  for (std::size_t i = node + 1; i < graph.nodes.size(); ++i) {
    const std::vector<ValueId> read = inputs_of(graph.nodes[i]);
    if (std::any_of(read.begin(), read.end(), lives_on)) return true;
  }
  return false;
}

}  // namespace hfta::fusion::cpu
