#pragma once
/// Elements of any dtype one by one: for what is small, or made once. Whole numbers stay whole: none passes through a
/// double.

#include <cstdint>
#include <functional>
#include <vector>

#include "fusion/cpu/ops.hpp"

namespace hfta::fusion::cpu {

/// Most elements of one tensor that is known beforehand: a plan holds it whole.
inline constexpr std::int64_t kMostConstants = std::int64_t{1} << 26;

/// A constant with these elements, row-major.
[[nodiscard]] Tensor constant_of(Builder& b, const Dims& sizes, DType dtype, const std::vector<double>& values);
[[nodiscard]] Tensor constant_of(Builder& b, const Dims& sizes, DType dtype, const std::vector<std::int64_t>& values);
/// A constant of a single element, without dimensions.
[[nodiscard]] Tensor constant_of(Builder& b, DType dtype, const Number& value);

/// A function of two elements: of doubles, and the same of whole numbers.
struct ElementFunction {
  std::function<double(double, double)> reals;
  std::function<std::int64_t(std::int64_t, std::int64_t)> integers;
};
/// Emits f(x, y), which broadcast, as `dtype`: bool, int64 or floating point. Without gradients.
[[nodiscard]] Tensor elementwise(LoweringContext& site, DType dtype, const Tensor& x, const Tensor& y,
                                 const ElementFunction& f);

}  // namespace hfta::fusion::cpu
