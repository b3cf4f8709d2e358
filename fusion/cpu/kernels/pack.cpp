#include "fusion/cpu/kernels/pack.hpp"

#include <algorithm>

#include "fusion/simd/multiversion.hpp"

namespace hfta::fusion::cpu {
namespace {

constexpr std::int64_t kBlock = 8;
typedef float Lanes __attribute__((vector_size(32), aligned(4)));  // NOLINT(modernize-use-using)

// 8 x 8, by shuffles that every register of 32 bytes has an instruction for; wider ones are no faster.
inline __attribute__((always_inline)) void transpose_block(const float* from, std::int64_t ld, float* to,
                                                           std::int64_t ldt) {
  Lanes a[8], b[8];
  for (int i = 0; i < 8; ++i) a[i] = *reinterpret_cast<const Lanes*>(from + i * ld);
  for (int i = 0; i < 8; i += 2) {  // pairs of rows, in each half
    b[i] = __builtin_shufflevector(a[i], a[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    b[i + 1] = __builtin_shufflevector(a[i], a[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (int i = 0; i < 8; i += 4) {  // fours of them
    for (int j = 0; j < 2; ++j) {
      a[i + 2 * j] = __builtin_shufflevector(b[i + j], b[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      a[i + 2 * j + 1] = __builtin_shufflevector(b[i + j], b[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  }
  for (int i = 0; i < 4; ++i) {
    *reinterpret_cast<Lanes*>(to + i * ldt) = __builtin_shufflevector(a[i], a[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    *reinterpret_cast<Lanes*>(to + (i + 4) * ldt) = __builtin_shufflevector(a[i], a[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
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
  const std::int64_t whole_rows = rows / kBlock * kBlock, whole_columns = columns / kBlock * kBlock;
  for (std::int64_t r = 0; r < whole_rows; r += kBlock) {
    for (std::int64_t c = 0; c < whole_columns; c += kBlock)
      transpose_block(from + r * ld + c, ld, to + c * ldt + r, ldt);
  }
  transpose_plain(from + whole_columns, ld, whole_rows, columns - whole_columns, to + whole_columns * ldt, ldt);
  transpose_plain(from + whole_rows * ld, ld, rows - whole_rows, columns, to + whole_rows, ldt);
}

template <typename T>
void pack(const T* from, std::int64_t ld, bool transposed, std::int64_t k, std::int64_t columns, T* to,
          std::int64_t ldt) {
  if (transposed) {
    transpose(from, ld, columns, k, to, ldt);
  } else {
    for (std::int64_t r = 0; r < k; ++r) std::copy_n(from + r * ld, columns, to + r * ldt);
  }
  for (std::int64_t r = 0; ldt > columns && r < k; ++r) std::fill(to + r * ldt + columns, to + (r + 1) * ldt, T{0});
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

void pack_panel(const float* from, std::int64_t ld, bool transposed, std::int64_t k, std::int64_t columns, float* to,
                std::int64_t ldt) {
  pack(from, ld, transposed, k, columns, to, ldt);
}

void pack_panel(const double* from, std::int64_t ld, bool transposed, std::int64_t k, std::int64_t columns, double* to,
                std::int64_t ldt) {
  pack(from, ld, transposed, k, columns, to, ldt);
}

}  // namespace hfta::fusion::cpu
