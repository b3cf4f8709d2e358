#pragma once
/// What an array of slots needs of memory, predicted from its graph.

#include <cstdint>

#include "fusion/graph.hpp"
#include "fusion/recipe.hpp"

namespace hfta::engine {

/// Bytes.
struct MemoryNeed {
  std::int64_t slot = 0;         ///< A slot's own: trained weights, gradients and optimizer state.
  std::int64_t activations = 0;  ///< A batch's values, once forward and once backward, of whoever is at work.
  std::int64_t shared = 0;       ///< Weights that are held once for all slots.

  /// Of `width` slots, `working` of them at a time.
  [[nodiscard]] std::int64_t total(int width, int working) const {
    return shared + width * slot + working * activations;
  }
  /// As many slots as `room` has place for, at least one; `working`: at most so many work at a time.
  [[nodiscard]] std::int64_t most_slots(std::int64_t room, int working) const;
};

/// An upper bound on what one lowering or another keeps: nothing is thought to be reused.
[[nodiscard]] MemoryNeed memory_need(const fusion::Graph& graph, const fusion::Recipe& recipe);

}  // namespace hfta::engine
