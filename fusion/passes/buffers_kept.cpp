#include <optional>
#include <utility>
#include <vector>

#include "fusion/op_traits.hpp"
#include "fusion/passes/calls.hpp"
#include "fusion/passes/passes.hpp"
#include "fusion/passes/schema.hpp"

namespace hfta::fusion {
namespace {

// The call that makes a new tensor of what this one would write, if LibTorch has one.
std::optional<Node> without_writing(const Node& node) {
  Node plain = node;
  plain.op = out_of_place(node.op);
  const bool gives_one = node.outputs.size() == 1 && node.outputs[0] != kNoValue;
  if (plain.op == node.op || !gives_one || !find_schema(plain.op)) return std::nullopt;
  return plain;
}

// The weights that share memory with a value.
std::vector<ValueId> weights_at(const Graph& graph, const Aliases& aliases, ValueId value) {
  std::vector<ValueId> weights;
  for (const Weight& weight : graph.weights) {
    if (aliases.set_of(weight.value) == aliases.set_of(value)) weights.push_back(weight.value);
  }
  return weights;
}

}  // namespace

SpecializedGraph with_buffers_kept(SpecializedGraph reading) {
  const Aliases aliases(reading.graph);
  MemorySets weights(reading.graph);
  for (const Weight& weight : reading.graph.weights) weights.mark(weight.value);
  Substitution out(std::move(reading));
  for (std::size_t i = 0; i < out.count(); ++i) {
    Node node = out.take(i);
    if (!writes_in_place(node) || !weights.any(written_by(node))) {
      out.add(std::move(node), i);
    } else if (std::optional<Node> plain = without_writing(node)) {
      const ValueId shortened = plain->outputs[0];
      out.add(std::move(*plain), i);
      // A lookup reads the table itself, whose rows have the length that evaluation gives them.
      if (shortens_rows(node)) out.stand_for({.outputs = weights_at(out.graph(), aliases, shortened)}, shortened);
    } else {
      out.stand_for(node, argument_at(node, 0));
    }
  }
  return std::move(out).result();
}

}  // namespace hfta::fusion
