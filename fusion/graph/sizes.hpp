#pragma once
/// Sizes that a file gives, multiplied with checks. Internal to fusion.

#include <cstdint>
#include <optional>

#include "fusion/graph.hpp"

namespace hfta::fusion {

/// elements_of() and bytes_of(); nothing where 64 bits do not hold them.
[[nodiscard]] std::optional<std::int64_t> checked_elements(const Shape& shape, std::int64_t n);
[[nodiscard]] std::optional<std::int64_t> checked_bytes(const Shape& shape, DType dtype, std::int64_t n);

/// The sum of two numbers of elements or bytes. Throws Error{kConfig} where 64 bits do not hold it.
[[nodiscard]] std::int64_t sum_of_sizes(std::int64_t a, std::int64_t b);

}  // namespace hfta::fusion
