#pragma once
/// Whether ranks may each run some samples of a batch (fusion/collectives.hpp) and be together what one device is.

#include <cstdint>
#include <span>
#include <string>

#include "fusion/graph.hpp"
#include "fusion/recipe.hpp"

namespace hfta::fusion {

/// Why batches of these sizes cannot be divided among ranks by these parts (share_of_batch), naming an op and its place
/// where one is to blame; "" if they can: each output of the training graph is then proved to be a function of its own
/// sample, call by call (passes/rows.hpp), so that the loss is a mean over samples. `model`: without its loss. Throws
/// Error{kConfig} as with_complete_arguments.
[[nodiscard]] std::string why_not_divided(const Graph& model, const Recipe& recipe, std::span<const int> parts,
                                          std::span<const std::int64_t> batches);

/// Whether each sample's part of evaluation's outputs is proved, in the same way, to be a function of that sample
/// alone. Outputs that have no part for each sample do not matter. Throws likewise.
[[nodiscard]] bool evaluates_samples_apart(const Graph& model);

}  // namespace hfta::fusion
