#pragma once
/// An array whose ranks are the stages of a pipeline: where it is cut, what each rank holds. Internal to this room.

#include <cstddef>
#include <vector>

#include "fusion/execution/pipeline.hpp"
#include "fusion/passes/specialize.hpp"
#include "fusion/recipe.hpp"

namespace hfta::fusion {

/// The pipeline at this rank. `alone`: a slot's training reading; `owned`: by weight. Throws Error{kConfig} for what
/// why_no_pipeline() says, and for more stages than there are layers.
[[nodiscard]] Pipeline pipeline_of(const SpecializedGraph& alone, const Recipe& recipe, const std::vector<bool>& owned,
                                   Collectives& group);

/// By weight: whether this rank's stage holds it.
[[nodiscard]] std::vector<bool> held_in_stage(const Pipeline& pipeline, const Graph& training, const Graph& evaluation,
                                              const std::vector<bool>& owned);

/// Everybody's bytes, by rank, at every rank.
[[nodiscard]] std::vector<std::vector<std::byte>> of_all_ranks(Collectives& group, std::vector<std::byte> own);

}  // namespace hfta::fusion
