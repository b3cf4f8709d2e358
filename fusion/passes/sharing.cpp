#include "fusion/passes/sharing.hpp"

#include <algorithm>

#include "fusion/passes/schema.hpp"

namespace hfta::fusion {
namespace {

// Batch norm by the batch's own statistics: what it gives does not depend on the running ones.
bool by_batch_statistics(const Node& node) { return node.op == "aten::batch_norm" && std::get<bool>(node.args[5]); }

std::vector<ValueId> inputs_that_matter(const Node& node) {
  if (!by_batch_statistics(node)) return inputs_of(node);
  Node without = node;
  without.args[3] = without.args[4] = std::monostate();
  return inputs_of(without);
}

}  // namespace

std::vector<bool> owned_weights(const SpecializedGraph& training) {
  const Graph& graph = training.graph;
  MemorySets reached(graph), written(graph);
  reached.mark(graph.output);
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    for (const ValueId id : written_by(node)) written.mark(id);
    if (node.no_gradient || node.op == "aten::detach") continue;
    if (!reached.any(node.outputs) && !reached.any(written_by(node))) continue;
    for (const ValueId id : inputs_of(node)) reached.mark(id);
  }
  std::vector<bool> owned;
  for (const Weight& weight : graph.weights) {
    owned.push_back((weight.trained && reached.marked(weight.value)) || written.marked(weight.value));
  }
  return owned;
}

SpecializedGraph with_shared_statistics(SpecializedGraph reading, const std::vector<bool>& owned) {
  const Sharing sharing = sharing_of(reading, owned);
  Graph& graph = reading.graph;
  SpecializedGraph out{graph, {}};
  out.graph.nodes.clear();
  const auto add = [&](Node node, int index) {
    out.graph.nodes.push_back(std::move(node));
    out.index.push_back(index);
  };
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    const int index = reading.index[i];
    const bool shared = by_batch_statistics(node) && !written_by(node).empty() &&
                        !sharing.slotwise[static_cast<std::size_t>(node.outputs[0])];
    if (!shared) {
      add(node, index);
      continue;
    }
    Node normalised = node;
    normalised.args[3] = normalised.args[4] = std::monostate();
    add(std::move(normalised), index);
    const ValueId x = std::get<ValueId>(node.args[0]);
    std::vector<std::int64_t> dims = {0};
    const auto rank = static_cast<std::int64_t>(graph.values[static_cast<std::size_t>(x)].shape.size());
    for (std::int64_t d = 2; d < rank; ++d) dims.push_back(d);
    const Value running_mean = graph.values[static_cast<std::size_t>(std::get<ValueId>(node.args[3]))];
    const auto fresh = [&](const char* name, const Shape& shape) {
      out.graph.values.push_back({node.path + name, shape, running_mean.dtype, false});
      return static_cast<ValueId>(out.graph.values.size() - 1);
    };
    // Statistics are taken in the running ones' type, as batch_norm does: x may come in a lower precision.
    const ValueId exact = fresh(".exact", graph.values[static_cast<std::size_t>(x)].shape);
    add({"aten::to.dtype", {x, running_mean.dtype, false, false, {}}, {exact}, node.path, node.where, true}, index);
    const ValueId variance = fresh(".batch_var", running_mean.shape), mean = fresh(".batch_mean", running_mean.shape);
    Node statistics{"aten::var_mean.correction",
                    {exact, dims, std::int64_t{1}, false},
                    {variance, mean},
                    node.path,
                    node.where,
                    true};
    add(std::move(statistics), index);
    for (const auto& [running, now] : {std::pair{node.args[3], mean}, std::pair{node.args[4], variance}}) {
      add({"aten::lerp_.Scalar", {running, now, node.args[6]}, {kNoValue}, node.path, node.where, true}, index);
    }
  }
  return out;
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
  // What is written belongs to all who see that memory, before and after; so passes repeat until nothing changes.
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
    for (const Node& node : graph.nodes) {
      const std::vector<ValueId> inputs = inputs_that_matter(node);
      const bool number = is_number_op(node.op);
      const bool own = !number && (any(sharing.slotwise, inputs) || draws(node) || has_hyper(node));
      const bool after_divergence = own || any(sharing.after_divergence, inputs) ||
                                    any(sharing.slotwise, inputs_of(node)) || any(sharing.slotwise, node.outputs);
      const bool data = !number && any(sharing.from_data, inputs);
      std::vector<ValueId> given = node.outputs;
      const std::vector<ValueId> in_memory = written_by(node);
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
