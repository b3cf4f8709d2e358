#include "fusion/cpu/kernels/batch_norm.hpp"

#include <algorithm>

#include "fusion/simd/multiversion.hpp"
#include "fusion/simd/vector.hpp"

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

// Stretches side by side, whose sums over rows stay in registers.
template <typename V, std::size_t kCount, bool kWhole>
struct Strip {
  using T = typename V::Element;
  static constexpr std::size_t kStretches = kCount;
  simd::Stretch<V, kWhole> first;

  [[nodiscard]] inline __attribute__((always_inline)) simd::Stretch<V, kWhole> operator[](std::size_t k) const {
    return {first.i + static_cast<std::int64_t>(k) * simd::kLanes, first.count};
  }
};

// Calls visit(strip) for n columns.
template <std::size_t kCount, typename V, typename Visit>
inline __attribute__((always_inline)) void for_each_strip(std::int64_t n, Visit visit) {
  constexpr std::int64_t kWidth = kCount * simd::kLanes;
  const std::int64_t strips = n / kWidth * kWidth;
  for (std::int64_t c = 0; c < strips; c += kWidth) visit(Strip<V, kCount, true>{{c}});
  simd::for_each_stretch<V>(
      n - strips, [&]<bool kWhole>(simd::Stretch<V, kWhole> at) __attribute__((always_inline)) {
        at.i += strips;
        visit(Strip<V, 1, kWhole>{at});
      });
}

// `centre` = the mean of each column.
template <typename V, typename T>
inline __attribute__((always_inline)) void block_means(const T* x, std::int64_t ld, std::int64_t rows,
                                                       std::int64_t columns, T* centre) {
  const V share = T{1} / static_cast<T>(rows);
  for_each_strip<4, V>(
      columns, [=](auto strip) __attribute__((always_inline)) {
        V sums[strip.kStretches];
        for (std::int64_t r = 0; r < rows; ++r) {
          simd::for_each_index<strip.kStretches>([&](auto k) __attribute__((always_inline)) {
            sums[k] += strip[k](x + r * ld);
          });
        }
        simd::for_each_index<strip.kStretches>([&](auto k) __attribute__((always_inline)) {
          strip[k].store(centre, sums[k] * share);
        });
      });
}

// Sums of x - centre, and of its squares, over the rows of each column.
template <typename V, typename T>
inline __attribute__((always_inline)) void block_squares(const T* x, std::int64_t ld, std::int64_t rows,
                                                         std::int64_t columns, const T* centre, T* sum, T* squares) {
  for_each_strip<2, V>(
      columns, [=](auto strip) __attribute__((always_inline)) {
        V middle[strip.kStretches], sums[strip.kStretches], products[strip.kStretches];
        simd::for_each_index<strip.kStretches>([&](auto k)
                                                   __attribute__((always_inline)) { middle[k] = strip[k](centre); });
        for (std::int64_t r = 0; r < rows; ++r) {
          simd::for_each_index<strip.kStretches>([&](auto k) __attribute__((always_inline)) {
            const V off = strip[k](x + r * ld) - middle[k];
            sums[k] += off;
            products[k] += off * off;
          });
        }
        simd::for_each_index<strip.kStretches>([&](auto k) __attribute__((always_inline)) {
          strip[k].store(sum, sums[k]);
          strip[k].store(squares, products[k]);
        });
      });
}

// The first block is summed around its own mean; each other one around the mean of those before it: what that loses of
// the block's own variance is little beside what the distance of the means adds to the variance of all.
template <typename R, typename T>
inline __attribute__((always_inline)) void statistics(R, const T* x, std::int64_t ld, std::int64_t rows,
                                                      std::int64_t channels, double* mean, double* squares) {
  using V = simd::Lanes<T, R::kBytes>;
  std::fill_n(mean, channels, 0.0);
  std::fill_n(squares, channels, 0.0);
  for_each_block(
      rows, channels,
      [=](std::int64_t c0, std::int64_t width, std::int64_t r0, std::int64_t end) __attribute__((always_inline)) {
        T centre[kColumns], sum[kColumns], products[kColumns];
        const T* const block = x + r0 * ld + c0;
        if (r0 == 0) {
          block_means<V>(block, ld, end - r0, width, centre);
        } else {
          for (std::int64_t c = 0; c < width; ++c) centre[c] = static_cast<T>(mean[c0 + c]);
        }
        block_squares<V>(block, ld, end - r0, width, centre, sum, products);
        const auto n = static_cast<double>(r0), m = static_cast<double>(end - r0);
        for (std::int64_t c = 0; c < width; ++c) {
          const auto left = static_cast<double>(sum[c]);
          const double own = std::max(static_cast<double>(products[c]) - left * left / m, 0.0);
          join_statistics(n, mean[c0 + c], squares[c0 + c], m, static_cast<double>(centre[c]) + left / m, own);
        }
      });
}

// x or the residual may be y.
template <bool kRelu, bool kResidual, typename T>
inline __attribute__((always_inline)) void apply(const Normalisation<T>& by, const T* x, const T* residual,
                                                 std::int64_t ld, std::int64_t rows, std::int64_t channels, T* y) {
  const T* __restrict mean = by.mean;
  const T* __restrict scale = by.scale;
  const T* __restrict shift = by.shift;
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* in = x + r * ld;
    const T* other = residual + (kResidual ? r * ld : 0);
    T* out = y + r * ld;
#pragma GCC ivdep
    for (std::int64_t c = 0; c < channels; ++c) {
      T v = (in[c] - mean[c]) * scale[c] + shift[c];
      if constexpr (kResidual) v += other[c];
      out[c] = kRelu && v < T{0} ? T{0} : v;
    }
  }
}

template <typename T>
inline __attribute__((always_inline)) void any_apply(const Normalisation<T>& by, const T* x, const T* residual,
                                                     std::int64_t ld, std::int64_t rows, std::int64_t channels, T* y) {
  if (residual != nullptr) {
    by.relu ? apply<true, true>(by, x, residual, ld, rows, channels, y)
            : apply<false, true>(by, x, residual, ld, rows, channels, y);
  } else {
    by.relu ? apply<true, false>(by, x, residual, ld, rows, channels, y)
            : apply<false, false>(by, x, residual, ld, rows, channels, y);
  }
}

enum class Mask { kNone, kOutput, kRecomputed };

template <typename V>
inline __attribute__((always_inline)) V zero_where_zero(const V& y, const V& d) {
  using Part = typename V::Part;
  return V::of(
      y, d, [](const Part& a, const Part& b) __attribute__((always_inline)) { return a == Part{} ? Part{} : b; });
}
template <typename V>
inline __attribute__((always_inline)) V zero_unless_above(const V& y, const V& d) {
  using Part = typename V::Part;
  return V::of(
      y, d, [](const Part& a, const Part& b) __attribute__((always_inline)) { return a <= Part{} ? Part{} : b; });
}

// Sums over the rows of a strip.
template <Mask kMask, typename V, typename S, typename T>
inline __attribute__((always_inline)) void strip_gradients(const S& strip, const Normalisation<T>& by, const T* x,
                                                           const T* y, std::int64_t ld, std::int64_t rows, T* dy,
                                                           T* sum, T* product) {
  V mean[S::kStretches], scale[S::kStretches], shift[S::kStretches], sums[S::kStretches], products[S::kStretches];
  simd::for_each_index<S::kStretches>([&](auto k) __attribute__((always_inline)) {
    mean[k] = strip[k](by.mean);
    if constexpr (kMask == Mask::kRecomputed) {
      scale[k] = strip[k](by.scale);
      shift[k] = strip[k](by.shift);
    }
  });
  for (std::int64_t r = 0; r < rows; ++r) {
    simd::for_each_index<S::kStretches>([&](auto k) __attribute__((always_inline)) {
      const V off = strip[k](x + r * ld) - mean[k];
      V g = strip[k](dy + r * ld);
      if constexpr (kMask == Mask::kOutput) {
        g = zero_where_zero(strip[k](y + r * ld), g);
        strip[k].store(dy + r * ld, g);
      }
      if constexpr (kMask == Mask::kRecomputed) g = zero_unless_above(off * scale[k] + shift[k], g);
      sums[k] += g;
      products[k] += g * off;
    });
  }
  simd::for_each_index<S::kStretches>([&](auto k) __attribute__((always_inline)) {
    strip[k].store(sum, sums[k]);
    strip[k].store(product, products[k]);
  });
}

template <Mask kMask, typename R, typename T>
inline __attribute__((always_inline)) void gradients(R, const Normalisation<T>& by, const T* x, const T* y,
                                                     std::int64_t ld, std::int64_t rows, std::int64_t channels, T* dy,
                                                     double* sums, double* products) {
  using V = simd::Lanes<T, R::kBytes>;
  std::fill_n(sums, channels, 0.0);
  std::fill_n(products, channels, 0.0);
  for_each_block(
      rows, channels,
      [=](std::int64_t c0, std::int64_t width, std::int64_t r0, std::int64_t end) __attribute__((always_inline)) {
        T sum[kColumns], product[kColumns];
        const Normalisation<T> own{by.mean + c0, by.scale + c0, by.shift + c0, by.relu};
        const std::int64_t at = r0 * ld + c0;
        const T* const out = kMask == Mask::kOutput ? y + at : nullptr;
        for_each_strip<kMask == Mask::kRecomputed ? 1 : 2, V>(
            width, [&](auto strip) __attribute__((always_inline)) {
              strip_gradients<kMask, V>(strip, own, x + at, out, ld, end - r0, dy + at, sum, product);
            });
        for (std::int64_t c = 0; c < width; ++c) {
          sums[c0 + c] += static_cast<double>(sum[c]);
          products[c0 + c] += static_cast<double>(product[c]);
        }
      });
}

template <typename R, typename T>
inline __attribute__((always_inline)) void masked_gradients(R r, const Normalisation<T>& by, const T* x, const T* y,
                                                            std::int64_t ld, std::int64_t rows, std::int64_t channels,
                                                            T* dy, double* sums, double* products) {
  if (y != nullptr) {
    gradients<Mask::kOutput>(r, by, x, y, ld, rows, channels, dy, sums, products);
  } else if (by.relu) {
    gradients<Mask::kRecomputed>(r, by, x, y, ld, rows, channels, dy, sums, products);
  } else {
    gradients<Mask::kNone>(r, by, x, y, ld, rows, channels, dy, sums, products);
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
                       double* squares) {
  simd::multiversion([&](auto r) { statistics(r, x, ld, rows, channels, mean, squares); });
}
void column_statistics(const double* x, std::int64_t ld, std::int64_t rows, std::int64_t channels, double* mean,
                       double* squares) {
  simd::multiversion([&](auto r) { statistics(r, x, ld, rows, channels, mean, squares); });
}
void normalise(const Normalisation<float>& by, const float* x, const float* residual, std::int64_t ld,
               std::int64_t rows, std::int64_t channels, float* y) {
  simd::multiversion([&] { any_apply(by, x, residual, ld, rows, channels, y); });
}
void normalise(const Normalisation<double>& by, const double* x, const double* residual, std::int64_t ld,
               std::int64_t rows, std::int64_t channels, double* y) {
  simd::multiversion([&] { any_apply(by, x, residual, ld, rows, channels, y); });
}
void column_gradients(const Normalisation<float>& by, const float* x, const float* y, std::int64_t ld,
                      std::int64_t rows, std::int64_t channels, float* dy, double* sums, double* products) {
  simd::multiversion([&](auto r) { masked_gradients(r, by, x, y, ld, rows, channels, dy, sums, products); });
}
void column_gradients(const Normalisation<double>& by, const double* x, const double* y, std::int64_t ld,
                      std::int64_t rows, std::int64_t channels, double* dy, double* sums, double* products) {
  simd::multiversion([&](auto r) { masked_gradients(r, by, x, y, ld, rows, channels, dy, sums, products); });
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
