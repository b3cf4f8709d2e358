#pragma once
/// Conditions on the number of samples of a batch, as torch.export writes them down.

#include <cstdint>
#include <string>

namespace hfta::fusion {

/// Whether a condition in Python's notation, "N % 2 == 0 and 3*N < 1000", is true of `n`. Numbers, N, arithmetic,
/// comparisons, and, or, not, min and max are known. Throws Error{kConfig} for anything else, and for arithmetic that
/// leaves 64 bits.
[[nodiscard]] bool holds(const std::string& condition, std::int64_t n);

}  // namespace hfta::fusion
