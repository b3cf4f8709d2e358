#pragma once
/// What a slot's weights begin with.

#include <ATen/core/Tensor.h>

#include "base/random.hpp"
#include "fusion/graph.hpp"

namespace hfta::fusion {

/// On the host: in the type that is stored, else in float64. The same draws whatever the weight's own type.
[[nodiscard]] at::Tensor first_values(const Weight& weight, CountedRandom random);

}  // namespace hfta::fusion
