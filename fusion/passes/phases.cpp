#include "fusion/passes/phases.hpp"

#include "fusion/passes/schema.hpp"

namespace hfta::fusion {

Graph with_statistics_of_objective(Graph graph) {
  MemorySets needed(graph);
  needed.mark(graph.objective->loss);
  needed.mark(graph.objective->weight);
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    Node& node = graph.nodes[i];
    if (needed.any(node.outputs) || (!by_batch_statistics(node) && needed.any(written_by(node)))) {
      for (const ValueId id : inputs_of(node)) needed.mark(id);
    } else if (by_batch_statistics(node)) {
      const RunningStatistics& statistics = traits_of(node).statistics;
      argument_of(node, statistics.mean) = argument_of(node, statistics.variance) = {};
    }
  }
  return graph;
}

}  // namespace hfta::fusion
