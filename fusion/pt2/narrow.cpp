// Frozen matrices of a model in half precision keep the type of the file.
#include <algorithm>
#include <array>
#include <functional>
#include <utility>
#include <vector>

#include "fusion/graph/uses.hpp"
#include "fusion/op_traits.hpp"
#include "fusion/pt2/options.hpp"

namespace hfta::fusion::pt2 {
namespace {

// A smaller weight is not worth a call.
constexpr std::int64_t kLeastElements = 1 << 14;

/// An op that may read a narrow weight: the name of its argument.
struct Reader {
  const char* op;
  const char* weight;
  bool looks_up;  ///< Gives rows of the weight as they are, which are widened in its place.
};

constexpr std::array<Reader, 5> kReaders = {{{"aten::linear", "weight", false},
                                             {"aten::addmm", "mat2", false},
                                             {"aten::mm", "mat2", false},
                                             {"aten::matmul", "other", false},
                                             {"aten::embedding", "weight", true}}};

const Reader* reader_of(const Node& node) {
  const auto found = std::find_if(kReaders.begin(), kReaders.end(), [&](const Reader& r) { return node.op == r.op; });
  return found == kReaders.end() ? nullptr : found;
}

// The value that the node reads as a weight, and not otherwise; kNoValue: none.
ValueId weight_read(const Node& node) {
  const Reader* const reader = reader_of(node);
  const Arg* const arg = reader == nullptr ? nullptr : argument(node, reader->weight);
  const auto* const weight = arg == nullptr ? nullptr : std::get_if<ValueId>(arg);
  if (weight == nullptr) return kNoValue;
  const std::vector<ValueId> read = inputs_of(node);
  return std::count(read.begin(), read.end(), *weight) == 1 ? *weight : kNoValue;
}

bool is_stored_narrow(const Weight& weight) {
  const bool stored = weight.stored != nullptr && weight.init.kind == Init::Kind::kStored;
  if (!stored || weight.trained || weight.pairs || weight.shape.size() != 2) return false;
  if (!is_floating(weight.dtype) || !is_floating(weight.stored->dtype)) return false;
  return size_of(weight.stored->dtype) == 2 && size_of(weight.dtype) > 2 &&
         elements_of(weight.shape, 1) >= kLeastElements;
}

// By weight: whether it may be held as it is stored.
std::vector<bool> may_be_narrow(const Graph& graph) {
  std::vector<bool> as_weight(graph.values.size(), true);  // by value: nobody reads it otherwise
  for (const ValueId id : graph.outputs) as_weight[static_cast<std::size_t>(id)] = false;
  for (const Node& node : graph.nodes) {
    const ValueId weight = weight_read(node);
    for (const ValueId id : inputs_of(node)) {
      if (id != weight) as_weight[static_cast<std::size_t>(id)] = false;
    }
  }
  std::vector<bool> may;
  for (const Weight& weight : graph.weights) {
    may.push_back(is_stored_narrow(weight) && as_weight[static_cast<std::size_t>(weight.value)]);
  }
  return may;
}

ValueId add_value(Graph& graph, Value value) {
  graph.values.push_back(std::move(value));
  return static_cast<ValueId>(graph.values.size()) - 1;
}

Node widening(const Node& of, ValueId from, ValueId to, DType dtype) {
  return {"aten::to.dtype", {from, dtype}, {to}, of.path + ".widened", of.where, of.no_gradient, {"self", "dtype"}};
}

// The node, with a call behind it that widens the rows which it looked up.
void widen_rows(Graph& graph, Node node, const Weight& weight) {
  const ValueId wide = node.outputs[0];
  Value rows = graph.values[static_cast<std::size_t>(wide)];
  rows.name += " (narrow)";
  rows.dtype = weight.stored->dtype;
  const ValueId narrow = add_value(graph, std::move(rows));
  node.outputs[0] = narrow;
  Node widened = widening(node, narrow, wide, weight.dtype);
  graph.nodes.push_back(std::move(node));
  graph.nodes.push_back(std::move(widened));
}

// The node, with a call in front of it that widens the weight.
void widen_weight(Graph& graph, Node node, const Weight& weight) {
  const ValueId wide = add_value(graph, {weight.name + " (widened)", weight.shape, weight.dtype});
  graph.nodes.push_back(widening(node, weight.value, wide, weight.dtype));
  std::replace(node.args.begin(), node.args.end(), Arg(weight.value), Arg(wide));
  graph.nodes.push_back(std::move(node));
}

void make_narrow(Graph& graph, const std::vector<bool>& narrow) {
  std::vector<const Weight*> by_value(graph.values.size(), nullptr);
  for (std::size_t i = 0; i < graph.weights.size(); ++i) {
    if (narrow[i]) by_value[static_cast<std::size_t>(graph.weights[i].value)] = &graph.weights[i];
  }
  std::vector<Node> before = std::exchange(graph.nodes, {});
  for (Node& node : before) {
    const ValueId read = weight_read(node);
    const Weight* const weight = read == kNoValue ? nullptr : by_value[static_cast<std::size_t>(read)];
    if (weight == nullptr) {
      graph.nodes.push_back(std::move(node));
    } else if (reader_of(node)->looks_up) {
      widen_rows(graph, std::move(node), *weight);
    } else {
      widen_weight(graph, std::move(node), *weight);
    }
  }
  for (std::size_t i = 0; i < graph.weights.size(); ++i) {
    Weight& weight = graph.weights[i];
    if (!narrow[i]) continue;
    weight.dtype = weight.stored->dtype;
    graph.values[static_cast<std::size_t>(weight.value)].dtype = weight.dtype;
  }
}

}  // namespace

void keep_narrow(Graph& graph, Graph* evaluation) {
  std::vector<bool> narrow = may_be_narrow(graph);
  if (evaluation != nullptr) {
    const std::vector<bool> too = may_be_narrow(*evaluation);
    std::transform(narrow.begin(), narrow.end(), too.begin(), narrow.begin(), std::logical_and<>());
  }
  if (std::find(narrow.begin(), narrow.end(), true) == narrow.end()) return;
  make_narrow(graph, narrow);
  if (evaluation != nullptr) make_narrow(*evaluation, narrow);
}

}  // namespace hfta::fusion::pt2
