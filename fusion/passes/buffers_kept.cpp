#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <string>

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
  const std::size_t dot = plain.op.find('.');
  const std::string overload = dot == std::string::npos ? "" : plain.op.substr(dot + 1);
  const bool is_known = c10::Dispatcher::singleton().findSchema({plain.op.substr(0, dot), overload}).has_value();
  if (plain.op == node.op || node.outputs.size() != 1 || node.outputs[0] == kNoValue || !is_known) return std::nullopt;
  return plain;
}

}  // namespace

SpecializedGraph with_buffers_kept(SpecializedGraph reading) {
  MemorySets weights(reading.graph);
  for (const Weight& weight : reading.graph.weights) weights.mark(weight.value);
  Substitution out(std::move(reading));
  for (std::size_t i = 0; i < out.count(); ++i) {
    Node node = out.take(i);
    if (!writes_in_place(node) || !weights.any(written_by(node))) {
      out.add(std::move(node), i);
    } else if (std::optional<Node> plain = without_writing(node)) {
      out.add(std::move(*plain), i);
    } else {
      out.stand_for(node, argument_at(node, 0));
    }
  }
  return std::move(out).result();
}

}  // namespace hfta::fusion
