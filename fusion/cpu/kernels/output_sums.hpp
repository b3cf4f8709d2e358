#pragma once
/// Sums over a layer's output gradient L that say how far an error in its input goes (fusion/codec/bounds.hpp).

#include <cstdint>

#include "fusion/codec/slot_bounds.hpp"
#include "fusion/cpu/kernels/conv_geometry.hpp"

namespace hfta::fusion::cpu {

/// Mean square of n numbers, at least one.
[[nodiscard]] double mean_square(const float* x, std::int64_t n);

/// Sums of a convolution with `dy` [n, pixels, O]: the mean over taps of the sums over positions at which the tap meets
/// a pixel and not padding. `scratch`: 2 O doubles.
void sum_output(const ConvShape& shape, const float* dy, double* scratch, const SlotBounds::Sums& sums);
/// Sums of a linear layer with `dy` [rows, O].
void sum_output(const float* dy, std::int64_t rows, const SlotBounds::Sums& sums);

}  // namespace hfta::fusion::cpu
