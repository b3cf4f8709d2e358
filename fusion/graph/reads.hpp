#pragma once
/// Which weights of a graph are read at all.

#include <vector>

#include "fusion/graph/uses.hpp"

namespace hfta::fusion {

/// By weight: whether a call or an output of the graph, or of its evaluation, is or reads it. In what is left of a
/// model whose frozen part was split off (fusion/frozen_prefix.hpp) many are not.
[[nodiscard]] inline std::vector<bool> weights_read(const Graph& graph) {
  std::vector<bool> values(graph.values.size(), false);
  for (const Node& node : graph.nodes) {
    for (const ValueId id : inputs_of(node)) values[static_cast<std::size_t>(id)] = true;
  }
  for (const ValueId id : graph.outputs) values[static_cast<std::size_t>(id)] = true;
  std::vector<bool> read =
      graph.evaluation == nullptr ? std::vector<bool>(graph.weights.size(), false) : weights_read(*graph.evaluation);
  for (std::size_t i = 0; i < graph.weights.size(); ++i) {
    read[i] = read[i] || values[static_cast<std::size_t>(graph.weights[i].value)];
  }
  return read;
}

}  // namespace hfta::fusion
