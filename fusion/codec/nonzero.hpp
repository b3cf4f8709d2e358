#pragma once
/// What of values is not 0, put together: behind a relu that is about half of them. Plain C++; any thread.

#include <cstddef>
#include <cstdint>
#include <span>

namespace hfta::fusion {

/// Words of a mask of n bits.
[[nodiscard]] constexpr std::size_t mask_words(std::size_t n) { return (n + 31) / 32; }

/// Bit i of `mask` [mask_words(x.size())] says whether x[i] is not 0 (NaN is not).
void mask_nonzero(std::span<const float> x, std::uint32_t* mask);

/// Likewise, and `kept` [x.size()] begins with the values that are not 0, in order. Returns how many they are; what
/// lies behind them in `kept` may be overwritten.
std::size_t take_nonzero(std::span<const float> x, std::uint32_t* mask, float* kept);

/// x from its mask and the values that are not 0, which `kept` [x.size()] begins with; the others become +0.
void put_nonzero(const std::uint32_t* mask, const float* kept, std::span<float> x);

}  // namespace hfta::fusion
