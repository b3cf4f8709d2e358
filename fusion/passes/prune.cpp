#include "fusion/passes/passes.hpp"
#include "fusion/passes/schema.hpp"

namespace hfta::fusion {

SpecializedGraph pruned(SpecializedGraph reading) {
  Graph& graph = reading.graph;
  MemorySets needed(graph), buffers(graph);
  for (const ValueId id : graph.outputs) needed.mark(id);
  for (const Weight& weight : graph.weights) buffers.mark(weight.value);
  std::vector<bool> live(graph.nodes.size(), false);
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    const std::vector<ValueId> written = written_by(node);
    live[i] = needed.any(node.outputs) || needed.any(written) || buffers.any(written);
    if (!live[i]) continue;
    for (const ValueId id : inputs_of(node)) needed.mark(id);
  }
  SpecializedGraph out;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!live[i]) continue;
    out.index.push_back(reading.index[i]);
    out.graph.nodes.push_back(std::move(graph.nodes[i]));
    Node& node = out.graph.nodes.back();
    if (writes_in_place(node) && buffers.any(written_by(node))) node.no_gradient = true;
  }
  graph.nodes = std::move(out.graph.nodes);
  out.graph = std::move(graph);
  return out;
}

}  // namespace hfta::fusion
