#pragma once
/// Optimizers' states that say how large gradients are. Without torch.

#include "fusion/optimizers/element.hpp"

namespace hfta::fusion {

/// How large the kind's first state is behind this step, if every gradient so far was 1: that state then is an average
/// of gradients, times this number. 0 where it is none (a sum of squares; a momentum of 0), or there was no step.
[[nodiscard]] double state_per_gradient(OptimizerKind kind, const SlotStep& slot);

}  // namespace hfta::fusion
