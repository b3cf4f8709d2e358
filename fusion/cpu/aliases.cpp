#include "fusion/cpu/aliases.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "fusion/graph/uses.hpp"
#include "fusion/op_traits.hpp"

namespace hfta::fusion::cpu {
namespace {

// The values of the first argument, where outputs may share memory with it.
std::vector<ValueId> sources_of(const Node& node) {
  std::vector<ValueId> sources;
  if (is_number_op(node.op) || node.args.empty() || !may_share(node.op)) return sources;
  for (const Arg& arg : node.args) {
    for_each_value(arg, [&](ValueId id) { sources.push_back(id); });
    if (!sources.empty()) break;  // behind an equation
  }
  if (node.op == "aten::einsum" && sources.size() > 1) sources.clear();  // a product
  return sources;
}

// Sets of values, with a leader each.
class Sets {
 public:
  explicit Sets(std::size_t values) : leader_(values) { std::iota(leader_.begin(), leader_.end(), 0); }
  [[nodiscard]] ValueId leader(ValueId id) const {
    while (leader_[static_cast<std::size_t>(id)] != id) id = leader_[static_cast<std::size_t>(id)];
    return id;
  }
  void join(ValueId a, ValueId b) { leader_[static_cast<std::size_t>(leader(b))] = leader(a); }

 private:
  std::vector<ValueId> leader_;
};

// Sets of values that share memory through the nodes before `end`.
Sets sets_of(const Graph& graph, std::size_t end) {
  Sets sets(graph.values.size());
  for (std::size_t i = 0; i < end; ++i) {
    for (const ValueId from : sources_of(graph.nodes[i])) {
      for (const ValueId output : graph.nodes[i].outputs) {
        if (output != kNoValue) sets.join(from, output);
      }
    }
  }
  return sets;
}

}  // namespace

bool overwrites(const std::string& op) {
  const OpTraits* traits = op_traits(op);
  return traits != nullptr && traits->in_place;
}

ValueId written_by(const Node& node) {
  const auto* to = overwrites(node.op) && !node.args.empty() ? std::get_if<ValueId>(&node.args[0]) : nullptr;
  return to == nullptr ? kNoValue : *to;
}

bool may_share(const std::string& op) {
  const OpTraits* traits = op_traits(op);
  if (traits == nullptr || traits->in_place) return true;
  const bool converts = traits->kind == OpClass::kPointwise && traits->elements == Elements::kMoved;
  if (op == "aten::einsum") return true;
  return traits->kind == OpClass::kView || converts || traits->draws == Draws::kNoise;  // identity at rate 0
}

std::vector<ValueId> memory_of(const Graph& graph) {
  const Sets sets = sets_of(graph, graph.nodes.size());
  std::vector<ValueId> memory(graph.values.size());
  for (std::size_t v = 0; v < memory.size(); ++v) memory[v] = sets.leader(static_cast<ValueId>(v));
  return memory;
}

std::set<ValueId> sharing_memory(const Graph& graph, ValueId id, std::size_t end) {
  const Sets sets = sets_of(graph, end);
  std::set<ValueId> out;
  for (ValueId v = 0; v < static_cast<ValueId>(graph.values.size()); ++v) {
    if (sets.leader(v) == sets.leader(id)) out.insert(v);
  }
  return out;
}

bool seen_later(const Graph& graph, std::size_t node) {
  const ValueId written = written_by(graph.nodes[node]);
  if (written == kNoValue) return true;
  const std::set<ValueId> shared = sharing_memory(graph, written, node);
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

NodeRange range_of_writes(const Graph& graph, std::size_t node) {
  const ValueId written = written_by(graph.nodes[node]);
  if (written == kNoValue) return {node, node};
  const std::set<ValueId> shared = sharing_memory(graph, written, graph.nodes.size());
  NodeRange range{node, node};
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const std::vector<ValueId>& made = graph.nodes[i].outputs;
    const bool makes = std::any_of(made.begin(), made.end(), [&](ValueId id) { return shared.contains(id); });
    if (makes && !is_number_op(graph.nodes[i].op)) range.first = std::min(range.first, i);
    if (shared.contains(written_by(graph.nodes[i]))) range.last = std::max(range.last, i);
  }
  return range;
}

}  // namespace hfta::fusion::cpu
