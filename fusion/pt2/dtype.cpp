#include <algorithm>

#include "fusion/op_traits.hpp"
#include "fusion/pt2/options.hpp"

namespace hfta::fusion::pt2 {
namespace {

bool has_default_type(const Node& node) {
  const OpTraits* op = op_traits(node.op);
  return op != nullptr && op->default_type && node.outputs.size() == 1 && node.outputs[0] != kNoValue;
}

/// The type of complex numbers whose parts are of that type.
DType complex_of(DType part) { return part == DType::kFloat64 ? DType::kComplex128 : DType::kComplex64; }

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
    if (is_complex(dtype) && part_of(dtype) == from) dtype = complex_of(to);
  };
  for (Weight& weight : graph.weights) replace(weight.dtype);
  for (Value& value : graph.values) {
    if (!value.number) replace(value.dtype);
  }
  for (Node& node : graph.nodes) {
    if (from != to && has_default_type(node)) {
      const DType made = graph.values[static_cast<std::size_t>(node.outputs[0])].dtype;
      if (part_of(made) == to) say_dtype(node, made);
    }
    for (Arg& arg : node.args) {
      if (DType* dtype = std::get_if<DType>(&arg)) replace(*dtype);
    }
  }
}

}  // namespace hfta::fusion::pt2
