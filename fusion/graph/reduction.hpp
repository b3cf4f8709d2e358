#pragma once
/// What a loss op makes of the losses of all elements.

#include <cstdint>

namespace hfta::fusion {

/// ATen's numbers for the argument `reduction`.
enum class Reduction : std::int64_t { kNone = 0, kMean = 1, kSum = 2 };

}  // namespace hfta::fusion
