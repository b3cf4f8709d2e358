#include "fusion/passes/phases.hpp"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fusion/passes/schema.hpp"

namespace hfta::fusion {
namespace {

// By node: whether the objective depends on it. Batch norms that it does not depend on lose their running statistics.
std::vector<bool> needed_calls(Graph& graph) {
  MemorySets needed(graph);
  needed.mark(graph.objective->loss);
  needed.mark(graph.objective->weight);
  std::vector<bool> is_needed(graph.nodes.size(), false);
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    Node& node = graph.nodes[i];
    if (needed.any(node.outputs) || (!by_batch_statistics(node) && needed.any(written_by(node)))) {
      is_needed[i] = true;
      for (const ValueId id : inputs_of(node)) needed.mark(id);
    } else if (by_batch_statistics(node)) {
      const RunningStatistics& statistics = traits_of(node).statistics;
      argument_of(node, statistics.mean) = argument_of(node, statistics.variance) = {};
    }
  }
  return is_needed;
}

}  // namespace

// A buffer that a module counts in is written where a call of the same module is needed. What reads the result of a
// call that is left out reads the buffer.
Graph with_statistics_of_objective(Graph graph) {
  const std::vector<bool> is_needed = needed_calls(graph);
  std::set<std::string> modules;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (is_needed[i]) modules.insert(graph.nodes[i].path);
  }
  std::vector<Node> kept;
  std::map<ValueId, ValueId> stands_for;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    Node& node = graph.nodes[i];
    for (Arg& arg : node.args) {
      for_each_value(arg, [&](ValueId& id) {
        if (const auto other = stands_for.find(id); other != stands_for.end()) id = other->second;
      });
    }
    const std::vector<ValueId> written = written_by(node);
    const bool elsewhere = !is_needed[i] && !modules.contains(node.path);
    if (elsewhere && written.size() == 1 && node.outputs.size() <= 1 && !by_batch_statistics(node)) {
      if (!node.outputs.empty() && node.outputs[0] != kNoValue) stands_for[node.outputs[0]] = written[0];
      continue;
    }
    kept.push_back(std::move(node));
  }
  graph.nodes = std::move(kept);
  return graph;
}

}  // namespace hfta::fusion
