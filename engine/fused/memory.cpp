#include "engine/fused/memory.hpp"

#include <vector>

#include "fusion/graph/reads.hpp"
#include "fusion/passes/sharing.hpp"
#include "fusion/phases.hpp"

namespace hfta::engine {

MemoryNeed memory_need(const fusion::Graph& graph, const fusion::Recipe& recipe, const fusion::WayMemory& way,
                       std::int64_t data) {
  // The number of copies of each weight: itself, the optimizers' states, and sums of gradients.
  std::vector<std::size_t> copies(graph.weights.size(), recipe.accumulates ? 2 : 1);
  for (std::size_t p = 0; p < fusion::phase_count(recipe); ++p) {
    const std::size_t states = fusion::info_of(fusion::recipe_of_phase(recipe, p).optimizer).states.size();
    const std::vector<bool> trained = fusion::trained_in_phase(recipe, p, graph);
    for (std::size_t i = 0; i < trained.size(); ++i) copies[i] += trained[i] ? states : 0;
  }
  const std::vector<bool> read = fusion::weights_read(graph);
  const std::vector<bool> owned = fusion::owned_weights({graph, {}});  // running statistics, too
  MemoryNeed need;
  need.slot = way.slot;
  need.activations = way.at_work;
  need.shared = data;
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const fusion::Weight& weight = graph.weights[i];
    if (!weight.trained && !read[i]) continue;
    const std::int64_t bytes = fusion::size_of(weight.dtype) * fusion::elements_of(weight.shape, 1);
    const bool of_slot = weight.trained || owned[i];
    (of_slot ? need.slot : need.shared) += of_slot ? static_cast<std::int64_t>(copies[i]) * bytes : bytes;
  }
  return need;
}

}  // namespace hfta::engine
