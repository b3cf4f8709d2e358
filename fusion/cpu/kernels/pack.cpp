#include "fusion/cpu/kernels/pack.hpp"

#include <algorithm>

#include "fusion/simd/multiversion.hpp"

namespace hfta::fusion::cpu {
namespace {

typedef float Lanes __attribute__((vector_size(64), aligned(4)));  // NOLINT(modernize-use-using)

// 16 x 16: four perfect shuffles of 16 rows are a transposition.
inline __attribute__((always_inline)) void transpose_block(const float* from, std::int64_t ld, float* to,
                                                           std::int64_t ldt) {
  Lanes rows[16];
  for (int i = 0; i < 16; ++i) rows[i] = *reinterpret_cast<const Lanes*>(from + i * ld);
  for (int round = 0; round < 4; ++round) {
    Lanes next[16];
    for (std::size_t i = 0; i < 8; ++i) {
      next[2 * i] =
          __builtin_shufflevector(rows[i], rows[i + 8], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      next[2 * i + 1] =
          __builtin_shufflevector(rows[i], rows[i + 8], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    }
    for (int i = 0; i < 16; ++i) rows[i] = next[i];
  }
  for (int i = 0; i < 16; ++i) *reinterpret_cast<Lanes*>(to + i * ldt) = rows[i];
}

template <typename T>
inline __attribute__((always_inline)) void transpose_plain(const T* from, std::int64_t ld, std::int64_t rows,
                                                           std::int64_t columns, T* to, std::int64_t ldt) {
  for (std::int64_t c = 0; c < columns; ++c) {
    for (std::int64_t r = 0; r < rows; ++r) to[c * ldt + r] = from[r * ld + c];
  }
}

inline void transpose_in_blocks(const float* from, std::int64_t ld, std::int64_t rows, std::int64_t columns, float* to,
                                std::int64_t ldt) {
  const std::int64_t whole_rows = rows / 16 * 16, whole_columns = columns / 16 * 16;
  for (std::int64_t r = 0; r < whole_rows; r += 16) {
    for (std::int64_t c = 0; c < whole_columns; c += 16) transpose_block(from + r * ld + c, ld, to + c * ldt + r, ldt);
  }
  transpose_plain(from + whole_columns, ld, whole_rows, columns - whole_columns, to + whole_columns * ldt, ldt);
  transpose_plain(from + whole_rows * ld, ld, rows - whole_rows, columns, to + whole_rows, ldt);
}

template <typename T>
inline void copy_rows(const T* from, std::int64_t ld, std::int64_t rows, std::int64_t columns, T* to) {
  for (std::int64_t r = 0; r < rows; ++r) std::copy_n(from + r * ld, columns, to + r * columns);
}

}  // namespace

void transpose(const float* from, std::int64_t ld, std::int64_t rows, std::int64_t columns, float* to,
               std::int64_t ldt) {
  simd::multiversion([&] { transpose_in_blocks(from, ld, rows, columns, to, ldt); });
}

void transpose(const double* from, std::int64_t ld, std::int64_t rows, std::int64_t columns, double* to,
               std::int64_t ldt) {
  simd::multiversion([&] { transpose_plain(from, ld, rows, columns, to, ldt); });
}

void pack_panel(const float* from, std::int64_t ld, bool transposed, std::int64_t k, std::int64_t columns, float* to) {
  transposed ? transpose(from, ld, columns, k, to, columns) : copy_rows(from, ld, k, columns, to);
}

void pack_panel(const double* from, std::int64_t ld, bool transposed, std::int64_t k, std::int64_t columns,
                double* to) {
  transposed ? transpose(from, ld, columns, k, to, columns) : copy_rows(from, ld, k, columns, to);
}

}  // namespace hfta::fusion::cpu
