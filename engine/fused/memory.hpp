#pragma once
/// What an array of slots needs of memory, predicted from its graph.

#include "engine/trainer.hpp"
#include "fusion/graph.hpp"
#include "fusion/recipe.hpp"

namespace hfta::engine {

/// An upper bound on what one lowering or another keeps: nothing is thought to be reused.
[[nodiscard]] MemoryNeed memory_need(const fusion::Graph& graph, const fusion::Recipe& recipe);

}  // namespace hfta::engine
