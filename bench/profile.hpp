#pragma once
/// Where a compiled step's time goes, kernel by kernel.

#include <cstdint>
#include <string>

#include "fusion/epochs.hpp"
#include "fusion/graph.hpp"
#include "fusion/recipe.hpp"

namespace hfta::fusion {

/// A table of one slot's training step on the data's first batch, in the step's order: of each kernel the median time
/// of `repeats` runs, its share of the step, and of products the share of the most that fused multiply-adds give on
/// this core, of others the bytes a second that go through its tensors. The last row is the optimizer's. Weights are
/// random. `threads`: of the team that runs it.
[[nodiscard]] std::string profile(const Graph& graph, const Recipe& recipe, const DeviceData& data, std::int64_t batch,
                                  int threads, int repeats);

}  // namespace hfta::fusion
