#include "fusion/cpu/kernels/batch_norm.hpp"

#include <algorithm>

#include "fusion/simd/multiversion.hpp"

namespace hfta::fusion::cpu {
namespace {

constexpr std::int64_t kBlock = 64, kColumns = 64;  // 16 KiB of float: the first cache

// f(first column, columns, first row, past the last row) for blocks that fit the first cache, rows in order.
template <typename F>
inline __attribute__((always_inline)) void for_each_block(std::int64_t rows, std::int64_t channels, F f) {
  for (std::int64_t r0 = 0; r0 < rows; r0 += kBlock) {
    for (std::int64_t c0 = 0; c0 < channels; c0 += kColumns) {
      f(c0, std::min(kColumns, channels - c0), r0, std::min(r0 + kBlock, rows));
    }
  }
}

template <typename T>
inline __attribute__((always_inline)) void statistics(const T* x, std::int64_t ld, std::int64_t rows,
                                                      std::int64_t channels, double* mean, double* variance) {
  std::fill_n(mean, channels, 0.0);
  std::fill_n(variance, channels, 0.0);
  for_each_block(
      rows, channels,
      [=](std::int64_t c0, std::int64_t width, std::int64_t r0, std::int64_t end) __attribute__((always_inline)) {
        T centre[kColumns] = {}, sum[kColumns] = {}, squares[kColumns] = {};
        for (std::int64_t r = r0; r < end; ++r) {
          const T* __restrict row = x + r * ld + c0;
          for (std::int64_t c = 0; c < width; ++c) centre[c] += row[c];
        }
        const T share = T{1} / static_cast<T>(end - r0);
        for (std::int64_t c = 0; c < width; ++c) centre[c] *= share;
        for (std::int64_t r = r0; r < end; ++r) {
          const T* __restrict row = x + r * ld + c0;
          for (std::int64_t c = 0; c < width; ++c) {
            const T off = row[c] - centre[c];
            sum[c] += off;  // what rounding has left
            squares[c] += off * off;
          }
        }
        // Chan, Golub, LeVeque: the union's mean and squares from two parts'.
        const auto n = static_cast<double>(r0), m = static_cast<double>(end - r0);
        for (std::int64_t c = 0; c < width; ++c) {
          const double left = static_cast<double>(sum[c]);
          const double off = static_cast<double>(centre[c]) + left / m - mean[c0 + c];
          variance[c0 + c] += static_cast<double>(squares[c]) - left * left / m + off * off * (n * m / (n + m));
          mean[c0 + c] += off * (m / (n + m));
        }
      });
  for (std::int64_t c = 0; c < channels; ++c) variance[c] /= static_cast<double>(rows);
}

template <typename T>
inline __attribute__((always_inline)) void apply(const Normalisation<T>& by, const T* x, const T* residual,
                                                 std::int64_t ld, std::int64_t rows, std::int64_t channels, T* y) {
  const T* __restrict mean = by.mean;
  const T* __restrict scale = by.scale;
  const T* __restrict shift = by.shift;
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* __restrict in = x + r * ld;
    T* __restrict out = y + r * ld;
    if (residual != nullptr) {
      const T* __restrict other = residual + r * ld;
      if (by.relu) {
        for (std::int64_t c = 0; c < channels; ++c) {
          const T v = (in[c] - mean[c]) * scale[c] + shift[c] + other[c];
          out[c] = v < T{0} ? T{0} : v;
        }
      } else {
        for (std::int64_t c = 0; c < channels; ++c) out[c] = (in[c] - mean[c]) * scale[c] + shift[c] + other[c];
      }
    } else if (by.relu) {
      for (std::int64_t c = 0; c < channels; ++c) {
        const T v = (in[c] - mean[c]) * scale[c] + shift[c];
        out[c] = v < T{0} ? T{0} : v;
      }
    } else {
      for (std::int64_t c = 0; c < channels; ++c) out[c] = (in[c] - mean[c]) * scale[c] + shift[c];
    }
  }
}

enum class Mask { kNone, kOutput, kRecomputed };

template <Mask kMask, typename T>
inline __attribute__((always_inline)) void gradients(const Normalisation<T>& by, const T* x, const T* y,
                                                     std::int64_t ld, std::int64_t rows, std::int64_t channels, T* dy,
                                                     double* sums, double* products) {
  std::fill_n(sums, channels, 0.0);
  std::fill_n(products, channels, 0.0);
  for_each_block(
      rows, channels,
      [=](std::int64_t c0, std::int64_t width, std::int64_t r0, std::int64_t end) __attribute__((always_inline)) {
        T sum[kColumns] = {}, product[kColumns] = {};
        const T* __restrict mean = by.mean + c0;
        const T* __restrict scale = by.scale + c0;
        const T* __restrict shift = by.shift + c0;
        for (std::int64_t r = r0; r < end; ++r) {
          const T* __restrict in = x + r * ld + c0;
          T* __restrict d = dy + r * ld + c0;
          if constexpr (kMask == Mask::kOutput) {
            const T* __restrict out = y + r * ld + c0;
            for (std::int64_t c = 0; c < width; ++c) d[c] = out[c] == T{0} ? T{0} : d[c];
          }
          for (std::int64_t c = 0; c < width; ++c) {
            const T off = in[c] - mean[c];
            T g = d[c];
            if constexpr (kMask == Mask::kRecomputed) g = off * scale[c] + shift[c] <= T{0} ? T{0} : g;
            sum[c] += g;
            product[c] += g * off;
          }
        }
        for (std::int64_t c = 0; c < width; ++c) {
          sums[c0 + c] += static_cast<double>(sum[c]);
          products[c0 + c] += static_cast<double>(product[c]);
        }
      });
}

template <typename T>
inline __attribute__((always_inline)) void masked_gradients(const Normalisation<T>& by, const T* x, const T* y,
                                                            std::int64_t ld, std::int64_t rows, std::int64_t channels,
                                                            T* dy, double* sums, double* products) {
  if (y != nullptr) {
    gradients<Mask::kOutput>(by, x, y, ld, rows, channels, dy, sums, products);
  } else if (by.relu) {
    gradients<Mask::kRecomputed>(by, x, y, ld, rows, channels, dy, sums, products);
  } else {
    gradients<Mask::kNone>(by, x, y, ld, rows, channels, dy, sums, products);
  }
}

template <bool kRelu, bool kAdd, typename T>
inline __attribute__((always_inline)) void backward(const Normalisation<T>& by, const T* __restrict less,
                                                    const T* __restrict slope, const T* x, const T* dy, std::int64_t ld,
                                                    std::int64_t rows, std::int64_t channels, T* dx) {
  const T* __restrict mean = by.mean;
  const T* __restrict scale = by.scale;
  const T* __restrict shift = by.shift;
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* __restrict in = x + r * ld;
    const T* d = dy + r * ld;
    T* out = dx + r * ld;
#pragma GCC ivdep
    for (std::int64_t c = 0; c < channels; ++c) {
      const T off = in[c] - mean[c];
      T g = d[c];
      if constexpr (kRelu) g = off * scale[c] + shift[c] <= T{0} ? T{0} : g;
      const T v = (g - less[c] - off * slope[c]) * scale[c];
      out[c] = kAdd ? out[c] + v : v;
    }
  }
}

template <typename T>
inline __attribute__((always_inline)) void any_backward(const Normalisation<T>& by, const T* less, const T* slope,
                                                        const T* x, const T* dy, std::int64_t ld, std::int64_t rows,
                                                        std::int64_t channels, T* dx, bool add) {
  if (by.relu) {
    add ? backward<true, true>(by, less, slope, x, dy, ld, rows, channels, dx)
        : backward<true, false>(by, less, slope, x, dy, ld, rows, channels, dx);
  } else {
    add ? backward<false, true>(by, less, slope, x, dy, ld, rows, channels, dx)
        : backward<false, false>(by, less, slope, x, dy, ld, rows, channels, dx);
  }
}

}  // namespace

void column_statistics(const float* x, std::int64_t ld, std::int64_t rows, std::int64_t channels, double* mean,
                       double* variance) {
  simd::multiversion([&] { statistics(x, ld, rows, channels, mean, variance); });
}
void column_statistics(const double* x, std::int64_t ld, std::int64_t rows, std::int64_t channels, double* mean,
                       double* variance) {
  simd::multiversion([&] { statistics(x, ld, rows, channels, mean, variance); });
}
void normalise(const Normalisation<float>& by, const float* x, const float* residual, std::int64_t ld,
               std::int64_t rows, std::int64_t channels, float* y) {
  simd::multiversion([&] { apply(by, x, residual, ld, rows, channels, y); });
}
void normalise(const Normalisation<double>& by, const double* x, const double* residual, std::int64_t ld,
               std::int64_t rows, std::int64_t channels, double* y) {
  simd::multiversion([&] { apply(by, x, residual, ld, rows, channels, y); });
}
void column_gradients(const Normalisation<float>& by, const float* x, const float* y, std::int64_t ld,
                      std::int64_t rows, std::int64_t channels, float* dy, double* sums, double* products) {
  simd::multiversion([&] { masked_gradients(by, x, y, ld, rows, channels, dy, sums, products); });
}
void column_gradients(const Normalisation<double>& by, const double* x, const double* y, std::int64_t ld,
                      std::int64_t rows, std::int64_t channels, double* dy, double* sums, double* products) {
  simd::multiversion([&] { masked_gradients(by, x, y, ld, rows, channels, dy, sums, products); });
}
void normalise_backward(const Normalisation<float>& by, const float* less, const float* slope, const float* x,
                        const float* dy, std::int64_t ld, std::int64_t rows, std::int64_t channels, float* dx,
                        bool add) {
  simd::multiversion([&] { any_backward(by, less, slope, x, dy, ld, rows, channels, dx, add); });
}
void normalise_backward(const Normalisation<double>& by, const double* less, const double* slope, const double* x,
                        const double* dy, std::int64_t ld, std::int64_t rows, std::int64_t channels, double* dx,
                        bool add) {
  simd::multiversion([&] { any_backward(by, less, slope, x, dy, ld, rows, channels, dx, add); });
}

}  // namespace hfta::fusion::cpu
