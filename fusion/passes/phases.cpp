#include "fusion/passes/phases.hpp"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fusion/graph/names.hpp"
#include "fusion/passes/calls.hpp"
#include "fusion/passes/schema.hpp"

namespace hfta::fusion {
namespace {

// By node: whether the objective depends on it, in this step or, by what it writes to a buffer, in later ones.
std::vector<bool> needed_calls(const Graph& graph) {
  MemorySets needed(graph);
  needed.mark(graph.objective->loss);
  needed.mark(graph.objective->weight);
  std::vector<bool> is_needed(graph.nodes.size(), false);
  // Again and again, since a needed call may read what a call behind it writes.
  for (bool found = true; std::exchange(found, false);) {
    for (std::size_t i = graph.nodes.size(); i-- > 0;) {
      const Node& node = graph.nodes[i];
      if (is_needed[i]) continue;
      if (!needed.any(node.outputs) && (by_batch_statistics(node) || !needed.any(written_by(node)))) continue;
      is_needed[i] = found = true;
      for (const ValueId id : inputs_of(node)) needed.mark(id);
    }
  }
  return is_needed;
}

// The modules that the needed calls are made in, and those around them: the model itself, too.
std::set<std::string> modules_of(const Graph& graph, const std::vector<bool>& is_needed) {
  std::vector<std::string> paths = {"", kModelPath};
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (is_needed[i]) paths.push_back(graph.nodes[i].path);
  }
  const std::vector<std::string> modules = with_modules(paths);
  return {modules.begin(), modules.end()};
}

// Whether the call counts a norm's batch (`num_batches_tracked`) for a norm that is not needed: its module may be
// called several times, and counts in front of each of its norms.
bool counts_in_vain(const Graph& graph, std::size_t counting, const std::vector<bool>& is_needed) {
  const Node& node = graph.nodes[counting];
  const std::vector<ValueId> written = written_by(node);
  if (written.size() != 1 || graph.values[static_cast<std::size_t>(written[0])].dtype != DType::kInt64) return false;
  for (std::size_t i = counting + 1; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].path == node.path && by_batch_statistics(graph.nodes[i])) return !is_needed[i];
  }
  return false;
}

}  // namespace

// A call that is left out becomes one without effect, so that all others keep their positions, which are the keys of
// their randomness. What read its result reads the buffer.
Graph with_statistics_of_objective(Graph graph) {
  const std::vector<bool> is_needed = needed_calls(graph);
  const std::set<std::string> modules = modules_of(graph, is_needed);
  std::map<ValueId, ValueId> stands_for;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    Node& node = graph.nodes[i];
    for (Arg& arg : node.args) {
      for_each_value(arg, [&](ValueId& id) {
        if (const auto other = stands_for.find(id); other != stands_for.end()) id = other->second;
      });
    }
    if (is_needed[i]) continue;
    if (by_batch_statistics(node)) {
      node = call::without_running_statistics(std::move(node));
      continue;
    }
    const std::vector<ValueId> written = written_by(node);
    const bool counts = modules.contains(node.path) && !counts_in_vain(graph, i, is_needed);
    if (counts || written.size() != 1 || node.outputs.size() > 1) continue;
    if (!node.outputs.empty() && node.outputs[0] != kNoValue) stands_for[node.outputs[0]] = written[0];
    node = call::cloned(node, written[0]);
  }
  return graph;
}

}  // namespace hfta::fusion
