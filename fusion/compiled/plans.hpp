#pragma once
/// What is compiled of a recipe: the plans by which slots train. Internal to this room.

#include <cstdint>
#include <vector>

#include "fusion/codec/slot_bounds.hpp"
#include "fusion/cpu/compiled_graph.hpp"
#include "fusion/cpu/library.hpp"
#include "fusion/graph.hpp"
#include "fusion/passes/specialize.hpp"
#include "fusion/recipe.hpp"

namespace hfta::fusion {

/// Throws Error{kConfig} for a precision that kernels are not compiled for.
void check_precision(const Recipe& recipe);

/// Samples of a batch of the graph.
[[nodiscard]] std::int64_t training_batch(const Graph& graph, const Recipe& recipe);

/// The weights whose layers' inputs may be encoded: none, unless the recipe compresses.
[[nodiscard]] BoundLayout bounds_in(const Graph& graph, const Recipe& recipe);

/// The graph in which every weight that slots own is their own: what evaluation reads of it is no constant, though its
/// graph writes none of it.
[[nodiscard]] Graph with_owned(Graph graph, const std::vector<bool>& owned);

/// Of the reading for training. `n`: samples of a batch. `threads`: of a team at most. `recompute`:
/// Lowering::recompute, of plans that encode nothing. `bounds`: bounds_in() of its graph. Throws Error{kConfig} naming
/// an op that cannot be compiled.
[[nodiscard]] cpu::CompiledGraph training_plan(const SpecializedGraph& reading, const Recipe& recipe, std::int64_t n,
                                               const cpu::Library* library, int threads, int recompute,
                                               const BoundLayout& bounds);

}  // namespace hfta::fusion
