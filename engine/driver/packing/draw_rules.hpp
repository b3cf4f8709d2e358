#pragma once
/// How far draws run ahead of slots, and whether they join open arrays: facts of a study's method.

#include "engine/driver/trials/trial_table.hpp"

namespace hfta::engine {

/// Widths per device that draws run ahead, so that rare partitions fill arrays too; those of a sampler that learns run
/// less far, because the earlier they are the fewer results they see.
inline constexpr int kAhead = 16, kAheadOfResults = 4;
[[nodiscard]] inline int widths_ahead(const TrialTable& table) {
  return table.draws_learn() ? kAheadOfResults : kAhead;
}

/// Whether draws join open arrays. Draws that wait see nothing of what is learnt meanwhile. Where every trial trains
/// to its end, a study has few draws in all, so that half an array of them may wait, and the slots that are still empty
/// get draws for their own partition (Sampler::ask()). Where trials are stopped early there are many draws, and those
/// that wait are few among them; made for the partition of an array that never falls empty, they would all be of one.
[[nodiscard]] inline bool draws_join(const TrialTable& table) { return table.draws_learn() && !table.stops_trials(); }

}  // namespace hfta::engine
