#pragma once
/// Conversion between DType and ATen's ScalarType.

#include <c10/core/ScalarType.h>

#include <optional>

#include "fusion/graph.hpp"

namespace hfta::fusion {

/// ATen's type for `dtype`.
[[nodiscard]] at::ScalarType scalar_type(DType dtype);
/// The DType of an ATen type; nothing for a type that graphs do not have.
[[nodiscard]] std::optional<DType> dtype_of(at::ScalarType type);

}  // namespace hfta::fusion
