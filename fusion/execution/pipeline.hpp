#pragma once
/// A pipeline whose stages are the ranks of a group: each runs some of a graph's calls, for all slots.

#include <string>

#include "fusion/collectives.hpp"
#include "fusion/graph/stage_cut.hpp"
#include "fusion/recipe.hpp"

namespace hfta::fusion {

/// Rank 0 has the last stage, and so losses and answers; the highest rank has the first one.
struct Pipeline {
  Collectives& group;
  StageCut cut;  ///< The cut, with as many stages as ranks.

  [[nodiscard]] int stage() const { return cut.stages - 1 - group.rank(); }
  [[nodiscard]] bool is_first() const { return stage() == 0; }
  [[nodiscard]] bool is_last() const { return stage() == cut.stages - 1; }
  /// The ranks that have the stages beside this one.
  [[nodiscard]] int rank_before() const { return group.rank() + 1; }
  [[nodiscard]] int rank_behind() const { return group.rank() - 1; }
};

/// Slots that are under way in a stage of a pipeline: for each thread one more than there are stages, so that all of
/// these are at work, and the batch of the next slot is there.
[[nodiscard]] constexpr int slots_of_stage(int threads, int stages) { return threads * (stages + 1); }

/// Why no pipeline trains by the recipe, whatever the model; "" if some may.
[[nodiscard]] std::string why_no_pipeline(const Recipe& recipe);

}  // namespace hfta::fusion
