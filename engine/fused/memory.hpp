#pragma once
/// Predicts the memory that an array of slots needs, from its graph and from the executor that runs it.

#include "engine/trainer.hpp"
#include "fusion/graph.hpp"
#include "fusion/recipe.hpp"
#include "fusion/ways.hpp"

namespace hfta::engine {

/// The predicted need: as exact as `way`, except that weights that training does not reach count as trained. `way`:
/// memory of the executor; `data`: bytes of the device that all slots' samples take.
[[nodiscard]] MemoryNeed memory_need(const fusion::Graph& graph, const fusion::Recipe& recipe,
                                     const fusion::WayMemory& way, std::int64_t data);

}  // namespace hfta::engine
