#pragma once
/// Dropout masks that are filled part by part.

#include <cstddef>
#include <cstdint>

namespace hfta::fusion {

/// Parts that begin at multiples of so many elements take the least time.
inline constexpr std::size_t kDrawnAtOnce = 64;

/// Elements [first, first + n) of what fill_dropout_mask (draws.hpp) fills, to out[0], ..., out[n - 1].
void fill_dropout_mask_part(float* out, std::size_t first, std::size_t n, double p, std::uint64_t key,
                            std::uint32_t node, std::uint64_t step);
void fill_dropout_mask_part(double* out, std::size_t first, std::size_t n, double p, std::uint64_t key,
                            std::uint32_t node, std::uint64_t step);

}  // namespace hfta::fusion
