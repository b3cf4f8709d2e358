#pragma once
/// What an array of slots needs of memory, predicted from its graph and from who runs it.

#include "engine/trainer.hpp"
#include "fusion/graph.hpp"
#include "fusion/recipe.hpp"
#include "fusion/ways.hpp"

namespace hfta::engine {

/// As exact as `way` is, but that weights which training does not reach count as trained. `way`: what running takes;
/// `data`: bytes of the device that all slots' samples take.
[[nodiscard]] MemoryNeed memory_need(const fusion::Graph& graph, const fusion::Recipe& recipe,
                                     const fusion::WayMemory& way, std::int64_t data);

}  // namespace hfta::engine
