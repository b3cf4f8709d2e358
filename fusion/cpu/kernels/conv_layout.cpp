#include "fusion/cpu/kernels/conv_layout.hpp"

#include <algorithm>

#include "fusion/cpu/kernels/pack.hpp"
#include "fusion/simd/multiversion.hpp"

namespace hfta::fusion::cpu {
namespace {

template <typename T>
inline __attribute__((always_inline)) void gather(const T* __restrict from, std::int64_t step, std::int64_t n,
                                                  T* __restrict to) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = from[i * step];
}

void gather_row(const float* from, std::int64_t step, std::int64_t n, float* to) {
  simd::multiversion([&] { gather(from, step, n, to); });
}
void gather_row(const double* from, std::int64_t step, std::int64_t n, double* to) {
  simd::multiversion([&] { gather(from, step, n, to); });
}

template <typename T>
void turn(const Turning& s, bool outputs_first, const std::int64_t* elements, std::int64_t taps, const T* from, T* to,
          T* scratch) {
  if (!outputs_first) {
    for (std::int64_t i = 0; i < s.k; ++i) {
      for (std::int64_t t = 0; t < taps; ++t) {
        T* const row = to + t * s.tap_stride + i * s.ld;
        if (s.elements == 1) {
          std::copy_n(from + i * s.stride, s.columns, row);
        } else {
          gather_row(from + i * s.stride + elements[t], s.elements, s.columns, row);
        }
      }
    }
    return;
  }
  for (std::int64_t i0 = 0; i0 < s.k; i0 += kTurnedAtOnce) {
    const std::int64_t count = std::min(kTurnedAtOnce, s.k - i0);
    transpose(from + i0 * s.elements, s.stride, s.columns, count * s.elements, scratch, s.columns);
    for (std::int64_t t = 0; t < taps; ++t) {
      for (std::int64_t i = 0; i < count; ++i) {
        std::copy_n(scratch + (i * s.elements + elements[t]) * s.columns, s.columns,
                    to + t * s.tap_stride + (i0 + i) * s.ld);
      }
    }
  }
}

}  // namespace

template <typename T>
void copy_bordered(const TapGeometry& g, std::int64_t channels, std::int64_t first, std::int64_t block, const T* from,
                   T* to) {
  const std::int64_t rows = g.source[0], columns = g.source[1];
  const std::int64_t width = g.bordered[1] * block, used = std::min(block, channels - first);
  std::fill_n(to, g.before[0] * width, T{0});
  for (std::int64_t h = 0; h < rows; ++h) {
    T* const row = to + (h + g.before[0]) * width;
    T* const inner = row + g.before[1] * block;
    const T* const source = from + h * g.source[1] * channels + first;
    std::fill(row, inner, T{0});
    if (block == channels) {
      std::copy_n(source, columns * channels, inner);
    } else {
      for (std::int64_t w = 0; w < columns; ++w) std::copy_n(source + w * channels, used, inner + w * block);
    }
    std::fill(inner + columns * block, row + width, T{0});
  }
  std::fill_n(to + (g.before[0] + rows) * width, (g.bordered[0] - g.before[0] - rows) * width, T{0});
}

std::int64_t turning_scratch(std::int64_t elements, std::int64_t columns) { return kTurnedAtOnce * elements * columns; }

void turn_weights(const Turning& turning, bool outputs_first, const std::int64_t* elements, std::int64_t taps,
                  const float* from, float* to, float* scratch) {
  turn(turning, outputs_first, elements, taps, from, to, scratch);
}
void turn_weights(const Turning& turning, bool outputs_first, const std::int64_t* elements, std::int64_t taps,
                  const double* from, double* to, double* scratch) {
  turn(turning, outputs_first, elements, taps, from, to, scratch);
}

template <typename T>
void add_transposed(const T* from, std::int64_t ld, std::int64_t rows, std::int64_t columns, T* to, std::int64_t ldt,
                    T* scratch) {
  transpose(from, ld, rows, columns, scratch, rows);
  for (std::int64_t c = 0; c < columns; ++c) {
    for (std::int64_t r = 0; r < rows; ++r) to[c * ldt + r] += scratch[c * rows + r];
  }
}

template void copy_bordered(const TapGeometry&, std::int64_t, std::int64_t, std::int64_t, const float*, float*);
template void copy_bordered(const TapGeometry&, std::int64_t, std::int64_t, std::int64_t, const double*, double*);
template void add_transposed(const float*, std::int64_t, std::int64_t, std::int64_t, float*, std::int64_t, float*);
template void add_transposed(const double*, std::int64_t, std::int64_t, std::int64_t, double*, std::int64_t, double*);

}  // namespace hfta::fusion::cpu
