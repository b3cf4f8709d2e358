#pragma once
/// Where a value lives while a compiled step runs.

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "fusion/graph.hpp"

namespace hfta::fusion::cpu {

using Dims = std::vector<std::int64_t>;

/// Sizes, dimensions or dtypes that do not go together; the node that has them is named by who compiles it.
class Misfit : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

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
  /// Position of a dimension that may count from the end. Throws Misfit if there is none.
  [[nodiscard]] std::size_t index(std::int64_t d) const;

  /// These throw Misfit where the tensor has no such dimensions or elements.
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
/// Elements of a tensor of such sizes. Throws Misfit for negative ones, and for more than any machine holds.
[[nodiscard]] std::int64_t elements(std::span<const std::int64_t> sizes);
/// Sizes that both broadcast to. Throws Misfit if there are none.
[[nodiscard]] Dims broadcast(const Dims& a, const Dims& b);
/// "[3, 4]"
[[nodiscard]] std::string to_text(std::span<const std::int64_t> sizes);
/// Strides with which `t`'s memory has the sizes `wanted`, if it has such.
[[nodiscard]] bool view_strides(const Tensor& t, const Dims& wanted, Dims& strides);

}  // namespace hfta::fusion::cpu
