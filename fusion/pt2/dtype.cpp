#include <algorithm>

#include "fusion/op_traits.hpp"
#include "fusion/pt2/options.hpp"

namespace hfta::fusion::pt2 {
namespace {

bool makes(const Graph& graph, const Node& node, DType dtype) {
  const OpTraits* op = op_traits(node.op);
  if (op == nullptr || !op->default_type || node.outputs.size() != 1 || node.outputs[0] == kNoValue) return false;
  return graph.values[static_cast<std::size_t>(node.outputs[0])].dtype == dtype;
}

void say_dtype(Node& node, DType dtype) {
  if (std::find(node.names.begin(), node.names.end(), "dtype") != node.names.end()) return;
  node.names.resize(node.args.size());
  node.args.emplace_back(dtype);
  node.names.emplace_back("dtype");
}

}  // namespace

void set_dtype(Graph& graph, DType from, DType to) {
  const auto replace = [&](DType& dtype) {
    if (dtype == from) dtype = to;
  };
  for (Weight& weight : graph.weights) replace(weight.dtype);
  for (Value& value : graph.values) {
    if (!value.number) replace(value.dtype);
  }
  for (Node& node : graph.nodes) {
    if (from != to && makes(graph, node, to)) say_dtype(node, to);
    for (Arg& arg : node.args) {
      if (DType* dtype = std::get_if<DType>(&arg)) replace(*dtype);
    }
  }
}

}  // namespace hfta::fusion::pt2
