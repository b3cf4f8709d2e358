#pragma once
/// Where a value lives while a compiled step runs.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fusion/graph.hpp"

namespace hfta::fusion::cpu {

using Dims = std::vector<std::int64_t>;

/// A strided view of a buffer. Sizes are the model's own, N included; the order in memory is free (images lie channels
/// last), so that a permutation costs nothing until a kernel needs another order.
struct Tensor {
  int buffer = -1;
  std::int64_t offset = 0;  ///< Elements.
  Dims sizes, strides;      ///< Elements; a stride of 0 repeats.
  DType dtype = DType::kFloat32;

  [[nodiscard]] bool defined() const { return buffer >= 0; }
  [[nodiscard]] std::int64_t dim() const { return static_cast<std::int64_t>(sizes.size()); }
  [[nodiscard]] std::int64_t size(std::int64_t d) const { return sizes[index(d)]; }
  [[nodiscard]] std::int64_t stride(std::int64_t d) const { return strides[index(d)]; }
  [[nodiscard]] std::int64_t numel() const;
  /// Row-major without gaps.
  [[nodiscard]] bool contiguous() const;
  /// Every element of a gapless stretch of memory exactly once, in whatever order.
  [[nodiscard]] bool dense() const;
  /// Position of a dimension that may count from the end.
  [[nodiscard]] std::size_t index(std::int64_t d) const { return static_cast<std::size_t>(d < 0 ? d + dim() : d); }

  [[nodiscard]] Tensor permuted(std::span<const std::int64_t> order) const;
  [[nodiscard]] Tensor transposed(std::int64_t a, std::int64_t b) const;
  /// Elements begin, begin + step, ... of a dimension.
  [[nodiscard]] Tensor sliced(std::int64_t d, std::int64_t begin, std::int64_t count, std::int64_t step = 1) const;
  /// One element of a dimension, which disappears.
  [[nodiscard]] Tensor selected(std::int64_t d, std::int64_t at) const;
  /// Repeated to `wanted` sizes as broadcasting does.
  [[nodiscard]] Tensor expanded(const Dims& wanted) const;
};

/// The order that takes tensor.permuted(order) back.
[[nodiscard]] Dims inverse(std::span<const std::int64_t> order);
/// Strides of a row-major tensor.
[[nodiscard]] Dims row_major(const Dims& sizes);
[[nodiscard]] std::int64_t product(std::span<const std::int64_t> sizes);
/// Sizes that both broadcast to.
[[nodiscard]] Dims broadcast(const Dims& a, const Dims& b);
/// Strides with which `t`'s memory has the sizes `wanted`, if it has such.
[[nodiscard]] bool view_strides(const Tensor& t, const Dims& wanted, Dims& strides);

}  // namespace hfta::fusion::cpu
