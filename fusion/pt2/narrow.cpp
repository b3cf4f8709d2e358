// Frozen matrices of a model in half precision keep the type of the file.
#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>

#include "fusion/graph/reads.hpp"
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

// Whether the node reads the value as a weight, and not otherwise.
bool reads_as_weight(const Node& node, ValueId value) {
  const Reader* const reader = reader_of(node);
  const std::vector<ValueId> read = inputs_of(node);
  if (reader == nullptr || std::count(read.begin(), read.end(), value) != 1) return false;
  const Arg* const weight = argument(node, reader->weight);
  return weight != nullptr && *weight == Arg(value);
}

bool may_be_narrow(const Graph& graph, const Weight& weight) {
  const bool stored = weight.stored != nullptr && weight.init.kind == Init::Kind::kStored;
  if (!stored || weight.trained || weight.pairs || weight.shape.size() != 2) return false;
  if (!is_floating(weight.dtype) || !is_floating(weight.stored->dtype)) return false;
  if (size_of(weight.stored->dtype) != 2 || size_of(weight.dtype) <= 2) return false;
  if (elements_of(weight.shape, 1) < kLeastElements) return false;
  if (std::count(graph.outputs.begin(), graph.outputs.end(), weight.value) > 0) return false;
  return std::all_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    const std::vector<ValueId> read = inputs_of(node);
    return std::count(read.begin(), read.end(), weight.value) == 0 || reads_as_weight(node, weight.value);
  });
}

ValueId add_value(Graph& graph, Value value) {
  graph.values.push_back(std::move(value));
  return static_cast<ValueId>(graph.values.size()) - 1;
}

Node widening(const Node& of, ValueId from, ValueId to, DType dtype) {
  return {"aten::to.dtype", {from, dtype}, {to}, of.path + ".widened", of.where, of.no_gradient, {"self", "dtype"}};
}

// Puts the calls that widen the weight in front of its readers, or behind them.
void widen_for_readers(Graph& graph, const Weight& weight, DType narrow) {
  std::vector<Node> before = std::exchange(graph.nodes, {});
  for (Node& node : before) {
    if (!reads_as_weight(node, weight.value)) {
      graph.nodes.push_back(std::move(node));
      continue;
    }
    if (reader_of(node)->looks_up) {
      const ValueId wide = node.outputs[0];
      Value rows = graph.values[static_cast<std::size_t>(wide)];
      rows.name += " (narrow)";
      rows.dtype = narrow;
      node.outputs[0] = add_value(graph, std::move(rows));
      graph.nodes.push_back(std::move(node));
      const Node& own = graph.nodes.back();
      graph.nodes.push_back(widening(own, own.outputs[0], wide, weight.dtype));
      continue;
    }
    const ValueId wide = add_value(graph, {weight.name + " (widened)", weight.shape, weight.dtype});
    graph.nodes.push_back(widening(node, weight.value, wide, weight.dtype));
    for (Arg& arg : node.args) {
      if (arg == Arg(weight.value)) arg = wide;
    }
    graph.nodes.push_back(std::move(node));
  }
}

void make_narrow(Graph& graph, std::size_t i) {
  const DType narrow = graph.weights[i].stored->dtype;
  widen_for_readers(graph, graph.weights[i], narrow);
  graph.weights[i].dtype = narrow;
  graph.values[static_cast<std::size_t>(graph.weights[i].value)].dtype = narrow;
}

}  // namespace

void keep_narrow(Graph& graph, Graph* evaluation) {
  for (std::size_t i = 0; i < graph.weights.size(); ++i) {
    if (!may_be_narrow(graph, graph.weights[i])) continue;
    if (evaluation != nullptr && !may_be_narrow(*evaluation, evaluation->weights[i])) continue;
    make_narrow(graph, i);
    if (evaluation != nullptr) make_narrow(*evaluation, i);
  }
}

}  // namespace hfta::fusion::pt2
