#pragma once
/// Elements of any dtype as doubles: for what is small, or made once.

#include <functional>
#include <vector>

#include "fusion/cpu/ops.hpp"

namespace hfta::fusion::cpu {

/// Elements of one tensor that is known beforehand: a plan holds it whole.
inline constexpr std::int64_t kMostConstants = std::int64_t{1} << 26;

/// A constant with these elements, row-major.
[[nodiscard]] Tensor constant_of(Builder& b, const Dims& sizes, DType dtype, const std::vector<double>& values);
/// Emits f(x, y), which broadcast, as `dtype`: bool, int64 or floating point. Without gradients.
[[nodiscard]] Tensor elementwise(Site& site, DType dtype, const Tensor& x, const Tensor& y,
                                 std::function<double(double, double)> f);

}  // namespace hfta::fusion::cpu
