#include "fusion/cpu/kernels/gemm.hpp"

#include <fmt/format.h>
#include <libxsmm.h>

#include <algorithm>
#include <type_traits>

#include "base/error.hpp"
#include "fusion/cpu/kernels/pack.hpp"
#include "fusion/cpu/kernels/xsmm.hpp"
#include "fusion/simd/multiversion.hpp"

namespace hfta::fusion::cpu {
namespace {

// A block's part of B, 64 columns of float by 256, is 64 KiB: it stays in the second cache while A streams by.
constexpr std::int64_t kRows = 64, kColumns = 64, kDepth = 256;

// LIBXSMM counts columns first, as BLAS does: our C^T = B^T A^T.
template <typename T>
auto micro_kernel(const Product& p, std::int64_t rows, std::int64_t columns, std::int64_t depth, bool add) {
  const auto m = static_cast<libxsmm_blasint>(columns), n = static_cast<libxsmm_blasint>(rows),
             k = static_cast<libxsmm_blasint>(depth);
  const auto lda = static_cast<libxsmm_blasint>(p.ldb), ldb_x = static_cast<libxsmm_blasint>(p.lda),
             ldc = static_cast<libxsmm_blasint>(p.ldc);
  const int flags = p.a_transposed ? LIBXSMM_GEMM_FLAG_TRANS_B : LIBXSMM_GEMM_FLAG_NONE;
  hold_xsmm();
  const T alpha = 1, beta = add ? 1 : 0;
  if constexpr (std::is_same_v<T, float>) {
    return libxsmm_smmdispatch(m, n, k, &lda, &ldb_x, &ldc, &alpha, &beta, &flags, nullptr);
  } else {
    return libxsmm_dmmdispatch(m, n, k, &lda, &ldb_x, &ldc, &alpha, &beta, &flags, nullptr);
  }
}

// Rows that lie a multiple of 1 KiB apart share few sets of the first cache, and drive one another out.
template <typename T>
bool falls_together(std::int64_t ld) {
  return ld * static_cast<std::int64_t>(sizeof(T)) % 1024 == 0;
}

template <typename T>
void copy_block(const T* from, std::int64_t ld, std::int64_t rows, std::int64_t columns, T* to, std::int64_t ldt) {
  for (std::int64_t r = 0; r < rows; ++r) std::copy_n(from + r * ld, columns, to + r * ldt);
}

}  // namespace

template <typename T>
Gemm<T>::Gemm(const Product& product) : p_(product) {
  rows_ = std::min(kRows, p_.m);
  columns_ = std::min(kColumns, p_.n);
  depth_ = p_.k <= kDepth * 3 / 2 ? p_.k : kDepth;
  // Panels cost a copy of B, which enough rows of A pay for; a transposed B has to be turned anyway.
  packed_ = p_.b_transposed || (p_.n > kColumns && p_.m >= 256);
  // For columns that do not fill a register LIBXSMM has masks with AVX-512 alone; otherwise it goes one by one.
  filled_ = packed_ && !p_.a_transposed && simd::instruction_set() != simd::InstructionSet::kV4;
  tiled_ = !p_.a_transposed && falls_together<T>(p_.ldc);
  blocked_ = p_.a_transposed && falls_together<T>(p_.lda) && p_.k > 16;
  const std::int64_t last = (p_.n - 1) % columns_ + 1;
  packed_size_ = packed_ ? (p_.n - last + width(last)) * p_.k : 0;
  scratch_ =
      packed_size_ + (aside(columns_) || aside(last) ? rows_ * width(columns_) : 0) + (blocked_ ? rows_ * depth_ : 0);
  for (const bool short_rows : {false, true}) {
    for (const bool short_columns : {false, true}) {
      for (const bool short_depth : {false, true}) {
        for (const bool adds : {false, true}) {
          const std::int64_t rows = short_rows ? p_.m % rows_ : rows_;
          const std::int64_t columns = short_columns ? p_.n % columns_ : columns_;
          const std::int64_t depth = short_depth ? p_.k % depth_ : depth_;
          if (rows == 0 || columns == 0 || depth == 0) continue;
          Product block = p_;
          if (packed_) block.ldb = width(columns);
          if (aside(columns)) block.ldc = width(columns_);
          if (blocked_) block.lda = rows_;
          const Micro micro = micro_kernel<T>(block, rows, width(columns), depth, adds);
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
std::int64_t Gemm<T>::width(std::int64_t columns) const {
  constexpr std::int64_t kRegister = 32 / static_cast<std::int64_t>(sizeof(T));
  return filled_ ? (columns + kRegister - 1) / kRegister * kRegister : columns;
}

template <typename T>
const T* Gemm<T>::panel(const T* b, std::int64_t column, T* scratch) const {
  if (!packed_) return b + column;
  T* const place = scratch + column * p_.k;
  const std::int64_t columns = std::min(columns_, p_.n - column);
  pack_panel(p_.b_transposed ? b + column * p_.ldb : b + column, p_.ldb, p_.b_transposed, p_.k, columns, place,
             width(columns));
  return place;
}

template <typename T>
void Gemm<T>::run(const T* a, const T* b, T* c, T* scratch, const Done* done) const {
  if (p_.a_transposed) return run_transposed(a, b, c, scratch, done);
  T* const tile = scratch + packed_size_;
  const std::int64_t tile_ld = width(columns_);
  for (std::int64_t j = 0; j < p_.n; j += columns_) {
    const std::int64_t columns = std::min(columns_, p_.n - j);
    const T* const part = panel(b, j, scratch);
    const std::int64_t ldb = packed_ ? width(columns) : p_.ldb;
    const bool tiled = aside(columns);
    for (std::int64_t i = 0; i < p_.m; i += rows_) {
      const std::int64_t rows = std::min(rows_, p_.m - i);
      T* const corner = c + i * p_.ldc + j;
      T* const out = tiled ? tile : corner;
      if (tiled && p_.add) copy_block(corner, p_.ldc, rows, columns, tile, tile_ld);
      for (std::int64_t k = 0; k < p_.k; k += depth_) {
        const Micro micro = micro_[rows < rows_][columns < columns_][p_.k - k < depth_][p_.add || k > 0];
        micro(part + k * ldb, a + i * p_.lda + k, out);
      }
      if (done != nullptr) (*done)(out, tiled ? tile_ld : p_.ldc, j, rows, columns);
      if (tiled) copy_block(tile, tile_ld, rows, columns, corner, p_.ldc);
    }
  }
}

// A's blocks are copied: rows that are a power of two apart would fall on one another in the cache.
template <typename T>
void Gemm<T>::run_transposed(const T* a, const T* b, T* c, T* scratch, const Done* done) const {
  T* const block = scratch + packed_size_;
  for (std::int64_t j = 0; packed_ && j < p_.n; j += columns_) static_cast<void>(panel(b, j, scratch));
  for (std::int64_t i = 0; i < p_.m; i += rows_) {
    const std::int64_t rows = std::min(rows_, p_.m - i);
    for (std::int64_t k = 0; k < p_.k; k += depth_) {
      const std::int64_t depth = std::min(depth_, p_.k - k);
      if (blocked_) copy_block(a + k * p_.lda + i, p_.lda, depth, rows, block, rows_);
      for (std::int64_t j = 0; j < p_.n; j += columns_) {
        const std::int64_t columns = std::min(columns_, p_.n - j);
        const T* const part = packed_ ? scratch + j * p_.k + k * columns : b + j + k * p_.ldb;
        const Micro micro = micro_[rows < rows_][columns < columns_][depth < depth_][p_.add || k > 0];
        micro(part, blocked_ ? block : a + k * p_.lda + i, c + i * p_.ldc + j);
      }
    }
    for (std::int64_t j = 0; done != nullptr && j < p_.n; j += columns_) {
      (*done)(c + i * p_.ldc + j, p_.ldc, j, rows, std::min(columns_, p_.n - j));
    }
  }
}

template class Gemm<float>;
template class Gemm<double>;

}  // namespace hfta::fusion::cpu
