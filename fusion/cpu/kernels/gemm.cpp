#include "fusion/cpu/kernels/gemm.hpp"

#include <fmt/format.h>
#include <libxsmm.h>

#include <algorithm>
#include <type_traits>

#include "base/error.hpp"
#include "fusion/cpu/kernels/pack.hpp"

namespace hfta::fusion::cpu {
namespace {

// A block's part of B, 64 columns of float by 256, is 64 KiB: it stays in the second cache while A streams by.
constexpr std::int64_t kRows = 64, kColumns = 64, kDepth = 256;

// LIBXSMM counts columns first, as BLAS does: our C^T = B^T A^T.
template <typename T>
auto micro_kernel(const Product& p, std::int64_t ldb, std::int64_t rows, std::int64_t columns, std::int64_t depth,
                  bool add) {
  const auto m = static_cast<libxsmm_blasint>(columns), n = static_cast<libxsmm_blasint>(rows),
             k = static_cast<libxsmm_blasint>(depth);
  const auto lda = static_cast<libxsmm_blasint>(ldb), ldb_x = static_cast<libxsmm_blasint>(p.lda),
             ldc = static_cast<libxsmm_blasint>(p.ldc);
  const int flags = p.a_transposed ? LIBXSMM_GEMM_FLAG_TRANS_B : LIBXSMM_GEMM_FLAG_NONE;
  const T alpha = 1, beta = add ? 1 : 0;
  if constexpr (std::is_same_v<T, float>) {
    return libxsmm_smmdispatch(m, n, k, &lda, &ldb_x, &ldc, &alpha, &beta, &flags, nullptr);
  } else {
    return libxsmm_dmmdispatch(m, n, k, &lda, &ldb_x, &ldc, &alpha, &beta, &flags, nullptr);
  }
}

}  // namespace

template <typename T>
Gemm<T>::Gemm(const Product& product) : p_(product) {
  rows_ = std::min(kRows, p_.m);
  columns_ = std::min(kColumns, p_.n);
  depth_ = p_.k <= kDepth * 3 / 2 ? p_.k : kDepth;
  // Panels cost a copy of B, which enough rows of A pay for; a transposed B has to be turned anyway.
  packed_ = p_.b_transposed || (p_.n > kColumns && p_.m >= 256);
  scratch_ = packed_ ? p_.n * p_.k : 0;
  for (const bool short_rows : {false, true}) {
    for (const bool short_columns : {false, true}) {
      for (const bool short_depth : {false, true}) {
        for (const bool adds : {false, true}) {
          const std::int64_t rows = short_rows ? p_.m % rows_ : rows_;
          const std::int64_t columns = short_columns ? p_.n % columns_ : columns_;
          const std::int64_t depth = short_depth ? p_.k % depth_ : depth_;
          if (rows == 0 || columns == 0 || depth == 0) continue;
          const Micro micro = micro_kernel<T>(p_, packed_ ? columns : p_.ldb, rows, columns, depth, adds);
          if (micro == nullptr) {
            throw Error(ErrorKind::kConfig,
                        fmt::format("matrix product {} x {} x {}: LIBXSMM has no kernel for it on this processor", p_.m,
                                    p_.n, p_.k));
          }
          micro_[short_rows][short_columns][short_depth][adds] = micro;
        }
      }
    }
  }
}

template <typename T>
void Gemm<T>::run(const T* a, const T* b, T* c, T* scratch, const Done* done) const {
  for (std::int64_t j = 0; j < p_.n; j += columns_) {
    const std::int64_t columns = std::min(columns_, p_.n - j);
    const T* panel = b + j;
    std::int64_t ldb = p_.ldb;
    if (packed_) {
      T* const place = scratch + j * p_.k;
      pack_panel(p_.b_transposed ? b + j * p_.ldb : b + j, p_.ldb, p_.b_transposed, p_.k, columns, place);
      panel = place;
      ldb = columns;
    }
    for (std::int64_t i = 0; i < p_.m; i += rows_) {
      const std::int64_t rows = std::min(rows_, p_.m - i);
      T* const corner = c + i * p_.ldc + j;
      for (std::int64_t k = 0; k < p_.k; k += depth_) {
        const bool adds = p_.add || k > 0;
        const Micro micro = micro_[rows < rows_][columns < columns_][p_.k - k < depth_][adds];
        micro(panel + k * ldb, p_.a_transposed ? a + k * p_.lda + i : a + i * p_.lda + k, corner);
      }
      if (done != nullptr) (*done)(corner, j, rows, columns);
    }
  }
}

template class Gemm<float>;
template class Gemm<double>;

}  // namespace hfta::fusion::cpu
