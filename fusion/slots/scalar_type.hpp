#pragma once
/// A DType as ATen has it.

#include <c10/core/ScalarType.h>

#include <optional>

#include "fusion/graph.hpp"

namespace hfta::fusion {

/// ATen's name for it.
[[nodiscard]] at::ScalarType scalar_type(DType dtype);
/// The other way; nothing for a type that graphs do not have.
[[nodiscard]] std::optional<DType> dtype_of(at::ScalarType type);

}  // namespace hfta::fusion
