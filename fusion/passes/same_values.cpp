#include "fusion/passes/same_values.hpp"

#include <fmt/format.h>

#include <map>
#include <string>

#include "fusion/graph/uses.hpp"
#include "fusion/passes/randomness.hpp"
#include "fusion/passes/schema.hpp"

namespace hfta::fusion {
namespace {

constexpr int kLikeNone = -1;

bool hold_the_same(const Weight& a, const Weight& b) {
  if (a.trained || b.trained || a.stored == nullptr || b.stored == nullptr || a.dtype != b.dtype) return false;
  return a.stored->shape == b.stored->shape && a.stored->dtype == b.stored->dtype && a.stored->bytes == b.stored->bytes;
}

/// Numbers values so that those that are made alike have the same number.
class Numbering {
 public:
  [[nodiscard]] std::vector<int> of(const Graph& graph) {
    std::vector<int> numbers(graph.values.size(), kLikeNone);
    for (std::size_t i = 0; i < graph.inputs.size(); ++i)
      at(numbers, graph.inputs[i]) = number(fmt::format("input {}", i));
    for (std::size_t i = 0; i < graph.weights.size(); ++i) {
      at(numbers, graph.weights[i].value) = number(fmt::format("weight {}", first_like(graph.weights, i)));
    }
    for (const Node& node : graph.nodes) {
      const std::string text = text_of(node, graph, numbers);
      for (std::size_t o = 0; o < node.outputs.size(); ++o) {
        if (node.outputs[o] == kNoValue) continue;
        at(numbers, node.outputs[o]) = text.empty() ? kLikeNone : number(fmt::format("{} {}", o, text));
      }
    }
    return numbers;
  }

 private:
  static int& at(std::vector<int>& numbers, ValueId id) { return numbers[static_cast<std::size_t>(id)]; }

  int number(const std::string& text) {
    return numbers_.try_emplace(text, static_cast<int>(numbers_.size())).first->second;
  }

  // A constant of evaluation's own stands behind that of training.
  static std::size_t first_like(const std::vector<Weight>& weights, std::size_t i) {
    if (!weights[i].name.starts_with("evaluation: ")) return i;
    for (std::size_t k = 0; k < i; ++k) {
      if (hold_the_same(weights[k], weights[i])) return k;
    }
    return i;
  }

  // "": like no other.
  static std::string text_of(const Node& node, const Graph& graph, const std::vector<int>& numbers) {
    if (!is_number_op(node.op) && (draws(node) || !written_by(node).empty())) return "";
    for (const ValueId id : inputs_of(node)) {
      if (numbers[static_cast<std::size_t>(id)] == kLikeNone) return "";
    }
    Graph one;  // its signature is that of the call alone
    one.nodes = {node};
    Node& call = one.nodes.front();
    call.path.clear();
    call.outputs.clear();
    call.no_gradient = false;
    for (Arg& arg : call.args) {
      for_each_value(arg, [&](ValueId& id) { id = numbers[static_cast<std::size_t>(id)]; });
    }
    std::string shapes;
    for (const ValueId id : node.outputs) {
      const Value* value = id == kNoValue ? nullptr : &graph.values[static_cast<std::size_t>(id)];
      shapes += value == nullptr ? "none " : to_text(value->shape) + name_of(value->dtype) + " ";
    }
    return shapes + one.signature();
  }

  std::map<std::string, int> numbers_;
};

}  // namespace

std::vector<ValueId> same_values(const Graph& training, const Graph& evaluation) {
  Numbering numbering;
  const std::vector<int> ours = numbering.of(training), theirs = numbering.of(evaluation);
  std::map<int, ValueId> by_number;
  for (std::size_t id = 0; id < theirs.size(); ++id) {
    if (theirs[id] != kLikeNone) by_number.try_emplace(theirs[id], static_cast<ValueId>(id));
  }
  std::vector<ValueId> same(ours.size(), kNoValue);
  for (std::size_t id = 0; id < ours.size(); ++id) {
    const auto found = ours[id] == kLikeNone ? by_number.end() : by_number.find(ours[id]);
    if (found != by_number.end()) same[id] = found->second;
  }
  return same;
}

}  // namespace hfta::fusion
