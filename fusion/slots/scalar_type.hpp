#pragma once
/// A DType as ATen has it.

#include <c10/core/ScalarType.h>

#include "fusion/graph.hpp"

namespace hfta::fusion {

/// ATen's name for it.
[[nodiscard]] at::ScalarType scalar_type(DType dtype);

}  // namespace hfta::fusion
