#include "fusion/recipe/mean_weight.hpp"

#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "fusion/graph/uses.hpp"
#include "fusion/op_traits.hpp"
#include "fusion/recipe/losses/rows.hpp"

namespace hfta::fusion {
namespace {

constexpr std::int64_t kIgnored = -100;  // the default of torch.nn.functional.cross_entropy

// Whether the call multiplies or divides its first argument by a number that stands in the graph.
bool scales(const Node& node) {
  const std::string_view name = base_name(node.op);
  const bool plain = node.args.size() == 2 && (name == "mul" || name == "div");
  return plain && (std::holds_alternative<double>(node.args[1]) || std::holds_alternative<std::int64_t>(node.args[1]));
}

// The call that computed the value, which may have been cast, scaled or given other dimensions since; null if none did.
const Node* computed_by(const Graph& graph, ValueId value) {
  const std::vector<std::size_t> makers = makers_of(graph);
  const auto made_by = [&](ValueId id) {
    const std::size_t maker = makers[static_cast<std::size_t>(id)];
    return maker == kNobody ? nullptr : &graph.nodes[maker];
  };
  const Node* node = made_by(value);
  while (node != nullptr && !node->args.empty()) {
    const OpTraits* traits = op_traits(node->op);
    const auto* from = std::get_if<ValueId>(&node->args.front());
    const bool same = traits != nullptr && (traits->elements == Elements::kMoved || scales(*node));
    if (!same || from == nullptr) return node;
    node = made_by(*from);
  }
  return node;
}

struct CountedClasses {
  ValueId target;
  Arg ignored;
  ValueId class_weight = kNoValue;
};

std::optional<CountedClasses> classes_of_mean(const Graph& graph, const Node& node) {
  const OpTraits* traits = op_traits(node.op);
  if (traits == nullptr || traits->classes.empty()) return std::nullopt;
  const Arg* target = argument(node, traits->classes);
  if (target == nullptr || !std::holds_alternative<ValueId>(*target)) return std::nullopt;
  const auto id = std::get<ValueId>(*target);
  const DType dtype = graph.values[static_cast<std::size_t>(id)].dtype;
  if (dtype != DType::kInt64 && dtype != DType::kUInt8) return std::nullopt;  // probabilities: nothing is ignored
  const Arg* weight = argument(node, "weight");
  const auto* class_weight = weight == nullptr ? nullptr : std::get_if<ValueId>(weight);
  if (class_weight != nullptr && graph.values[static_cast<std::size_t>(*class_weight)].shape.size() != 1) {
    return std::nullopt;
  }
  const Arg* reduction = argument(node, "reduction");
  if (reduction != nullptr && *reduction != to_arg(Reduction::kMean)) return std::nullopt;
  const Arg* ignored = argument(node, "ignore_index");
  return CountedClasses{id, ignored == nullptr ? Arg(kIgnored) : *ignored,
                        class_weight == nullptr ? kNoValue : *class_weight};
}

}  // namespace

ValueId position_weight(GraphWriter& graph, ValueId target, const Arg& ignored, ValueId class_weight) {
  const Shape shape = graph.shape(target);
  const ValueId counted = graph.call("ne.Scalar", {target, ignored}, shape, DType::kBool);
  const ValueId one = graph.call("to.dtype", {counted, graph.dtype()}, shape);
  if (class_weight == kNoValue) return one;
  const ValueId other = graph.call("eq.Scalar", {target, ignored}, shape, DType::kBool);
  ValueId known = graph.call("masked_fill.Scalar", {target, other, std::int64_t{0}}, shape, graph.value(target).dtype);
  if (graph.value(known).dtype != DType::kInt64) {
    known = graph.call("to.dtype", {known, DType::kInt64}, shape, DType::kInt64);
  }
  const Shape classes = {graph.shape(class_weight).front(), 1};
  const ValueId table =
      graph.call("unsqueeze", {class_weight, std::int64_t{1}}, classes, graph.value(class_weight).dtype);
  Shape column = shape;
  column.push_back(1);
  const ValueId rows = graph.call("embedding", {table, known}, column, graph.value(class_weight).dtype);
  const ValueId weight = graph.call("squeeze.dim", {rows, std::int64_t{-1}}, shape, graph.value(class_weight).dtype);
  return graph.map("mul.Tensor", {weight, one});
}

ValueId add_mean_weight(GraphWriter& graph, ValueId loss) {
  if (!graph.shape(loss).empty()) return kNoValue;
  const Node* node = computed_by(graph.graph(), loss);
  const auto classes = node == nullptr ? std::nullopt : classes_of_mean(graph.graph(), *node);
  if (!classes) return kNoValue;
  return reduced(graph, position_weight(graph, classes->target, classes->ignored, classes->class_weight),
                 Reduction::kSum);
}

}  // namespace hfta::fusion
