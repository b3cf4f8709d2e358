#pragma once
/// Products of matrices that lie in memory as views do, many at once.

#include <optional>
#include <vector>

#include "fusion/cpu/builder.hpp"
#include "fusion/cpu/kernels/gemm.hpp"

namespace hfta::fusion::cpu {

/// How the last two dimensions of a tensor lie: rows, or columns, one behind another.
struct MatrixLayout {
  bool transposed = false;
  std::int64_t ld = 0;
};
/// The layout; nothing if neither fits (a gap between elements, or one that is repeated).
[[nodiscard]] std::optional<MatrixLayout> layout_of(const Tensor& t);
/// The tensor, or a copy whose matrices Gemm can read and write.
[[nodiscard]] Tensor as_matrices(Builder& b, const Tensor& t);
/// Offset of each matrix, in elements; row-major in the leading dimensions.
[[nodiscard]] Dims places_of(const Tensor& t);

/// C [..., M, N] = or += A [..., M, K] B [..., K, N], for tensors of as_matrices(). Equal leading sizes.
template <typename T>
class BatchedProduct {
 public:
  BatchedProduct(const Tensor& a, const Tensor& b, const Tensor& c, bool add);

  /// Elements of scratch memory for one thread, or for a team of so many.
  [[nodiscard]] std::int64_t scratch(int threads = 1) const { return gemm_.scratch(threads); }
  /// Matrix `i` of each, row-major in the leading dimensions.
  void operator()(std::size_t i, const T* a, const T* b, T* c, T* scratch, Team* team = nullptr) const {
    const T* const left = (swapped_ ? b + places_[i].b : a + places_[i].a);
    const T* const right = (swapped_ ? a + places_[i].a : b + places_[i].b);
    gemm_(left, right, c + places_[i].c, scratch, team);
  }
  [[nodiscard]] std::size_t count() const { return places_.size(); }
  /// How a team may share the matrices: all are one stretch where two of C are the same memory.
  [[nodiscard]] Stretches stretches() const { return {static_cast<std::int64_t>(count()), at_once_}; }

 private:
  struct Places {
    std::int64_t a, b, c;
  };
  bool swapped_;  // C lies transposed, and so is computed: C^T = B^T A^T
  Gemm<T> gemm_;
  std::vector<Places> places_;
  std::int64_t at_once_ = 1;  // matrices of a stretch
};

/// Emits the kernel of a BatchedProduct.
void emit_products(Builder& builder, const Tensor& a, const Tensor& b, const Tensor& c, bool add);

}  // namespace hfta::fusion::cpu
