#include "fusion/pt2/options.hpp"

namespace hfta::fusion::pt2 {

void set_dtype(Graph& graph, DType from, DType to) {
  const auto replace = [&](DType& dtype) {
    if (dtype == from) dtype = to;
  };
  for (Weight& weight : graph.weights) replace(weight.dtype);
  for (Value& value : graph.values) {
    if (!value.number) replace(value.dtype);
  }
  for (Node& node : graph.nodes) {
    for (Arg& arg : node.args) {
      if (DType* dtype = std::get_if<DType>(&arg)) replace(*dtype);
    }
  }
}

}  // namespace hfta::fusion::pt2
