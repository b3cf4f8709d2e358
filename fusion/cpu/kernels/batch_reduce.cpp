#include "fusion/cpu/kernels/batch_reduce.hpp"

#include <fmt/format.h>
#include <libxsmm.h>

#include <type_traits>

#include "base/error.hpp"
#include "fusion/cpu/kernels/xsmm.hpp"

namespace hfta::fusion::cpu {

// LIBXSMM counts columns first, as BLAS does: our C^T = A^T B^T.
template <typename T>
BatchReduceKernel<T> batch_reduce_kernel(const BatchReduce& p) {
  const auto m = static_cast<libxsmm_blasint>(p.columns), n = static_cast<libxsmm_blasint>(p.rows),
             k = static_cast<libxsmm_blasint>(p.depth);
  const auto lda = static_cast<libxsmm_blasint>(p.lda), ldb = static_cast<libxsmm_blasint>(p.ldb),
             ldc = static_cast<libxsmm_blasint>(p.ldc);
  const int flags = p.b_transposed ? LIBXSMM_GEMM_FLAG_TRANS_B : LIBXSMM_GEMM_FLAG_NONE;
  const T alpha = 1, beta = p.add ? 1 : 0;
  hold_xsmm();
  BatchReduceKernel<T> kernel = nullptr;
  if constexpr (std::is_same_v<T, float>) {
    kernel = libxsmm_smmdispatch_reducebatch_offs(m, n, k, &lda, &ldb, &ldc, &alpha, &beta, &flags, nullptr);
  } else {
    kernel = libxsmm_dmmdispatch_reducebatch_offs(m, n, k, &lda, &ldb, &ldc, &alpha, &beta, &flags, nullptr);
  }
  if (kernel == nullptr) {
    throw Error(ErrorKind::kConfig,
                fmt::format("sum of products {} x {} x {}: LIBXSMM has no kernel for it on this processor", p.rows,
                            p.columns, p.depth));
  }
  return kernel;
}

template BatchReduceKernel<float> batch_reduce_kernel<float>(const BatchReduce& p);
template BatchReduceKernel<double> batch_reduce_kernel<double>(const BatchReduce& p);

}  // namespace hfta::fusion::cpu
