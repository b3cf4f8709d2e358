#include "fusion/passes/sharing.hpp"

#include <algorithm>

#include "fusion/passes/randomness.hpp"
#include "fusion/passes/schema.hpp"

namespace hfta::fusion {
namespace {

std::vector<ValueId> inputs_that_matter(const Node& node) {
  if (!by_batch_statistics(node)) return inputs_of(node);
  Node without = node;
  const RunningStatistics& statistics = traits_of(node).statistics;
  for (const std::string_view buffer : {statistics.mean, statistics.variance}) argument_of(without, buffer) = {};
  return inputs_of(without);
}

}  // namespace

std::vector<bool> owned_weights(const SpecializedGraph& training) {
  const Graph& graph = training.graph;
  MemorySets reached(graph), written(graph);
  for (const ValueId id : graph.outputs) reached.mark(id);
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    for (const ValueId id : written_by(node)) written.mark(id);
    if (node.no_gradient && !makes_view(node)) continue;  // what is returned as it was has its gradient
    if (!reached.any(node.outputs) && !reached.any(written_by(node))) continue;
    for (const ValueId id : inputs_of(node)) reached.mark(id);
  }
  std::vector<bool> owned;
  for (const Weight& weight : graph.weights) {
    owned.push_back(weight.per_slot || (weight.trained && reached.marked(weight.value)) ||
                    written.marked(weight.value));
  }
  return owned;
}

Sharing sharing_of(const SpecializedGraph& reading, const std::vector<bool>& owned) {
  const Graph& graph = reading.graph;
  const std::size_t count = graph.values.size();
  Sharing sharing{std::vector<bool>(count), std::vector<bool>(count), std::vector<bool>(count),
                  std::vector<bool>(count)};
  const Aliases aliases(graph);
  MemorySets written(graph);
  for (const Node& node : graph.nodes) {
    for (const ValueId id : written_by(node)) written.mark(id);
  }
  for (std::size_t id = 0; id < count; ++id) sharing.written[id] = written.marked(static_cast<ValueId>(id));
  const auto any = [](const std::vector<bool>& of, const std::vector<ValueId>& ids) {
    return std::any_of(ids.begin(), ids.end(),
                       [&](ValueId id) { return id != kNoValue && of[static_cast<std::size_t>(id)]; });
  };
  bool changed = true;
  const auto mark = [&](std::vector<bool>& of, ValueId id) {
    if (id == kNoValue || of[static_cast<std::size_t>(id)]) return;
    of[static_cast<std::size_t>(id)] = changed = true;
  };
  for (std::size_t i = 0; i < graph.weights.size(); ++i) {
    if (owned[i]) mark(sharing.slotwise, graph.weights[i].value);
  }
  for (const ValueId id : graph.inputs) mark(sharing.from_data, id);
  // A value written belongs to all who see its memory, before and after; so passes repeat until nothing changes.
  const auto spread_over_sets = [&](std::vector<bool>& of) {
    std::vector<bool> sets(count, false);
    for (std::size_t id = 0; id < count; ++id) {
      if (of[id] && sharing.written[id])
        sets[static_cast<std::size_t>(aliases.set_of(static_cast<ValueId>(id)))] = true;
    }
    for (std::size_t id = 0; id < count; ++id) {
      if (sets[static_cast<std::size_t>(aliases.set_of(static_cast<ValueId>(id)))]) mark(of, static_cast<ValueId>(id));
    }
  };
  while (changed) {
    changed = false;
    MemorySets read_late(graph);  // by calls so far that run after slots differ
    for (const Node& node : graph.nodes) {
      const std::vector<ValueId> inputs = inputs_that_matter(node);
      const bool number = is_number_op(node.op);
      const bool own = !number && (any(sharing.slotwise, inputs) || draws(node) || has_hyper(node));
      const bool after_divergence = own || any(sharing.after_divergence, inputs) ||
                                    any(sharing.slotwise, inputs_of(node)) || any(sharing.slotwise, node.outputs) ||
                                    any(sharing.after_divergence, node.outputs);
      const bool data = !number && any(sharing.from_data, inputs);
      std::vector<ValueId> given = node.outputs;
      const std::vector<ValueId> in_memory = written_by(node);
      if (after_divergence || any(sharing.after_divergence, in_memory)) {
        for (const ValueId id : inputs_of(node)) read_late.mark(id);
      } else if (read_late.any(in_memory)) {  // the write stays behind who reads what was there before
        for (const ValueId id : in_memory) mark(sharing.after_divergence, id);
      }
      if (!by_batch_statistics(node)) given.insert(given.end(), in_memory.begin(), in_memory.end());
      for (const ValueId id : given) {
        if (id == kNoValue) continue;
        if (own && !graph.values[static_cast<std::size_t>(id)].number) mark(sharing.slotwise, id);
        if (after_divergence) mark(sharing.after_divergence, id);
        if (data) mark(sharing.from_data, id);
      }
    }
    for (std::size_t id = 0; id < count; ++id) {
      if (sharing.slotwise[id]) mark(sharing.after_divergence, static_cast<ValueId>(id));
    }
    spread_over_sets(sharing.slotwise);
    spread_over_sets(sharing.after_divergence);
    spread_over_sets(sharing.from_data);
  }
  return sharing;
}

}  // namespace hfta::fusion
