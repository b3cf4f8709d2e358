#pragma once
/// Memory of a value while a compiled step runs. Every function here that is given sizes or dimensions throws
/// ShapeError where they do not fit.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "fusion/graph.hpp"

namespace hfta::fusion::cpu {

using Dims = std::vector<std::int64_t>;

/// Sizes or a dimension that no tensor here can have. Kind kConfig: graphs come from files. What it says has no place;
/// whoever compiles the op knows that.
class ShapeError : public Error {
 public:
  explicit ShapeError(const std::string& what) : Error(ErrorKind::kConfig, what) {}
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
  /// Whether its elements lie in its buffer where the other's lie in the other's.
  [[nodiscard]] bool lies_like(const Tensor& other) const {
    return sizes == other.sizes && strides == other.strides && offset == other.offset;
  }
  /// Position of a dimension that may count from the end.
  [[nodiscard]] std::size_t index(std::int64_t d) const;

  [[nodiscard]] Tensor permuted(std::span<const std::int64_t> order) const;
  [[nodiscard]] Tensor transposed(std::int64_t a, std::int64_t b) const;
  /// `count` elements begin, begin + step, ... of a dimension.
  [[nodiscard]] Tensor sliced(std::int64_t d, std::int64_t begin, std::int64_t count, std::int64_t step = 1) const;
  /// One element of a dimension, which disappears.
  [[nodiscard]] Tensor selected(std::int64_t d, std::int64_t at) const;
  /// Gives it one more dimension, of size 1, at the position `d` of the result, which may count from its end.
  void insert(std::int64_t d);
  /// Repeated to `wanted` sizes as broadcasting does.
  [[nodiscard]] Tensor expanded(const Dims& wanted) const;
};

/// The order that takes tensor.permuted(order) back.
[[nodiscard]] Dims inverse(std::span<const std::int64_t> order);
/// Strides of a row-major tensor.
[[nodiscard]] Dims row_major(const Dims& sizes);
/// Number of elements, 0 included. Negative sizes, and more elements than any machine holds, do not fit.
[[nodiscard]] std::int64_t product(std::span<const std::int64_t> sizes);
/// `wanted` with the -1 that it may have once replaced, so that it holds `elements`, as ATen's view has it.
[[nodiscard]] Dims inferred(Dims wanted, std::int64_t elements);
/// Sizes that both broadcast to.
[[nodiscard]] Dims broadcast(const Dims& a, const Dims& b);
/// "[3, 4]"
[[nodiscard]] std::string to_text(std::span<const std::int64_t> sizes);
/// Strides with which `t`'s memory has the sizes `wanted`, if it has such.
[[nodiscard]] bool view_strides(const Tensor& t, const Dims& wanted, Dims& strides);

}  // namespace hfta::fusion::cpu
