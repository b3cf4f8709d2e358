#include "fusion/recipe/mean_weight.hpp"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "fusion/graph/uses.hpp"
#include "fusion/op_traits.hpp"
#include "fusion/recipe/losses/rows.hpp"

namespace hfta::fusion {
namespace {

constexpr std::int64_t kIgnored = -100;  // the default of torch.nn.functional.cross_entropy

struct CountedClasses {
  ValueId target;
  Arg ignored;
  ValueId class_weight = kNoValue;

  bool operator==(const CountedClasses&) const = default;
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

// What a value is made of.
struct Origin {
  enum Kind { kNoSamples, kMeans, kOther } kind = kNoSamples;
  CountedClasses classes = {kNoValue, {}};  ///< kMeans: each element is a multiple of means over these, and a constant.
};

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Whether the call's results are sums of multiples of its arguments, of which those from samples are only added.
bool is_linear(const Node& node, const std::vector<Origin>& arguments) {
  const OpTraits* traits = op_traits(node.op);
  const std::string_view name = base_name(node.op);
  if (traits != nullptr && traits->elements == Elements::kMoved) return true;
  if (is_one_of(name, {"neg", "negative", "add", "sub", "subtract", "rsub", "sum", "mean", "stack", "cat"}))
    return true;
  const auto from_samples = [](const Origin& origin) { return origin.kind != Origin::kNoSamples; };
  if (is_one_of(name, {"mul", "multiply"})) return std::count_if(arguments.begin(), arguments.end(), from_samples) <= 1;
  if (!is_one_of(name, {"div", "divide", "true_divide"}) || node.op.ends_with("_mode")) return false;
  return std::none_of(arguments.begin() + (arguments.empty() ? 0 : 1), arguments.end(), from_samples);
}

Origin origin_of(const Graph& graph, const Node& node, const std::vector<Origin>& known) {
  if (const auto classes = classes_of_mean(graph, node)) return {Origin::kMeans, *classes};
  std::vector<Origin> arguments;
  for (const ValueId id : inputs_of(node)) arguments.push_back(known[static_cast<std::size_t>(id)]);
  Origin origin;
  for (const Origin& argument : arguments) {
    if (argument.kind == Origin::kNoSamples) continue;
    const bool more = origin.kind != Origin::kNoSamples && origin.classes != argument.classes;
    origin = more ? Origin{Origin::kOther} : argument;
    if (origin.kind == Origin::kOther) return origin;
  }
  return origin.kind == Origin::kMeans && !is_linear(node, arguments) ? Origin{Origin::kOther} : origin;
}

// The graph with one name for the integers that the same calls make of the same values: a model may flatten its targets
// once for each of its losses.
Graph with_one_name(Graph graph) {
  std::vector<ValueId> names(graph.values.size());
  std::iota(names.begin(), names.end(), 0);
  std::map<std::string, ValueId> made;
  for (Node& node : graph.nodes) {
    for (Arg& arg : node.args) {
      for_each_value(arg, [&](ValueId& id) { id = names[static_cast<std::size_t>(id)]; });
    }
    const OpTraits* traits = op_traits(node.op);
    if (traits != nullptr && traits->in_place) made.clear();  // what was made alike need not be alike now
    if (traits == nullptr || traits->in_place || traits->draws != Draws::kNothing || node.outputs.size() != 1) continue;
    const ValueId output = node.outputs.front();
    if (output == kNoValue || is_floating(graph.values[static_cast<std::size_t>(output)].dtype)) continue;
    Graph one;
    one.nodes = {Node{node.op, node.args, {}, "", "", false, node.names}};
    names[static_cast<std::size_t>(output)] = made.try_emplace(one.signature(), output).first->second;
  }
  return graph;
}

// The classes by which the means are taken that a loss is made of; nothing: it is something else, or that in part.
std::optional<CountedClasses> counted_by(const Graph& given, ValueId loss) {
  const Graph graph = with_one_name(given);
  std::vector<Origin> origins(graph.values.size());
  for (const ValueId id : graph.inputs) origins[static_cast<std::size_t>(id)].kind = Origin::kOther;
  for (const Node& node : graph.nodes) {
    const Origin origin = origin_of(graph, node, origins);
    for (const ValueId id : node.outputs) {
      if (id != kNoValue) origins[static_cast<std::size_t>(id)] = origin;
    }
  }
  const Origin& of_loss = origins[static_cast<std::size_t>(loss)];
  return of_loss.kind == Origin::kMeans ? std::optional(of_loss.classes) : std::nullopt;
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
  const Shape& shape = graph.shape(loss);
  if (std::any_of(shape.begin(), shape.end(), [](std::int64_t size) { return size != 1; })) return kNoValue;
  const std::optional<CountedClasses> classes = counted_by(graph.graph(), loss);
  if (!classes) return kNoValue;
  return reduced(graph, position_weight(graph, classes->target, classes->ignored, classes->class_weight),
                 Reduction::kSum);
}

}  // namespace hfta::fusion
