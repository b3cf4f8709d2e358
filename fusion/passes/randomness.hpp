#pragma once
/// Which calls draw random numbers.

#include "fusion/graph.hpp"

namespace hfta::fusion {

/// Whether the node, of with_complete_arguments, draws random numbers as it stands: its flag of training is not false,
/// and of noise the rate not 0.
[[nodiscard]] bool draws(const Node& node);

/// Whether what the node may draw is noise of a layer's own, which PyTorch's layers turn off in evaluation.
[[nodiscard]] bool draws_noise(const Node& node);

}  // namespace hfta::fusion
