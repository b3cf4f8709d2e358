#pragma once
/// Finds calls that draw random numbers.

#include "fusion/graph.hpp"

namespace hfta::fusion {

/// Whether the node, of with_complete_arguments, draws random numbers with its present arguments: its training flag is
/// not false, and the rate of noise is not 0.
[[nodiscard]] bool draws(const Node& node);

/// Whether what the node draws are dropout masks of its result's samples.
[[nodiscard]] bool draws_masks(const Node& node);

/// Whether what the node may draw is noise of a layer's own, which PyTorch's layers turn off in evaluation.
[[nodiscard]] bool draws_noise(const Node& node);

}  // namespace hfta::fusion
