#include "engine/fused/memory.hpp"

namespace hfta::engine {

MemoryNeed memory_need(const fusion::Graph& graph, const fusion::Recipe& recipe, const fusion::WayMemory& way,
                       std::int64_t data) {
  // Weights, the optimizer's states, and sums of gradients.
  const auto copies = static_cast<std::int64_t>(1 + fusion::info_of(recipe.optimizer).states.size() +
                                                static_cast<std::size_t>(recipe.accumulates ? 1 : 0));
  MemoryNeed need;
  need.slot = way.slot;
  need.activations = way.at_work;
  need.shared = data;
  for (const fusion::Weight& weight : graph.weights) {
    const std::int64_t bytes = fusion::size_of(weight.dtype) * fusion::elements_of(weight.shape, 1);
    (weight.trained ? need.slot : need.shared) += weight.trained ? copies * bytes : bytes;
  }
  return need;
}

}  // namespace hfta::engine
