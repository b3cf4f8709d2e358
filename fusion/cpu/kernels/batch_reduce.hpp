#pragma once
/// LIBXSMM's batch-reduce kernels: a sum of matrix products whose sums stay in registers.

#include <cstdint>

namespace hfta::fusion::cpu {

/// C [rows, columns] = (or, `add`, +=) the sum of all B_i A_i, row-major with leading dimensions in elements: A_i
/// [depth, columns], B_i [rows, depth], or `b_transposed`, lying as [depth, rows].
struct BatchReduce {
  std::int64_t rows = 0, columns = 0, depth = 0;
  std::int64_t lda = 0, ldb = 0, ldc = 0;  ///< lda >= columns, ldc >= columns; ldb >= depth, or rows if transposed.
  bool b_transposed = false;
  bool add = false;
};

/// Offsets are bytes.
template <typename T>
using BatchReduceKernel = void (*)(const T* a, const T* b, T* c, const unsigned long long* count,
                                   const unsigned long long* a_offsets, const unsigned long long* b_offsets, ...);

/// T: float, double. Throws Error{kConfig} where LIBXSMM makes no kernels for this processor.
template <typename T>
[[nodiscard]] BatchReduceKernel<T> batch_reduce_kernel(const BatchReduce& p);

}  // namespace hfta::fusion::cpu
