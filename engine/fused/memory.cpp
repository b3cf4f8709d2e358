#include "engine/fused/memory.hpp"

namespace hfta::engine {
namespace {

std::int64_t activations_of(const fusion::Graph& graph, std::int64_t batch) {
  std::int64_t bytes = 0;
  for (const fusion::Node& node : graph.nodes) {
    for (const fusion::ValueId id : node.outputs) {
      if (id == fusion::kNoValue) continue;
      const fusion::Value& value = graph.values[static_cast<std::size_t>(id)];
      if (!value.number) bytes += 2 * fusion::size_of(value.dtype) * fusion::elements_of(value.shape, batch);
    }
  }
  return bytes;
}

}  // namespace

MemoryNeed memory_need(const fusion::Graph& graph, const fusion::Recipe& recipe) {
  // Weights, gradients, and the optimizer's states.
  const auto copies = static_cast<std::int64_t>(2 + fusion::info_of(recipe.optimizer).states.size());
  MemoryNeed need;
  for (const fusion::Weight& weight : graph.weights) {
    const std::int64_t bytes = fusion::size_of(weight.dtype) * fusion::elements_of(weight.shape, 1);
    (weight.trained ? need.slot : need.shared) += weight.trained ? copies * bytes : bytes;
  }
  need.activations = activations_of(graph, recipe.batch_size);
  return need;
}

}  // namespace hfta::engine
