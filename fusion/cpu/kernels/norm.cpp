#include "fusion/cpu/kernels/norm.hpp"

#include <algorithm>
#include <cmath>

#include "fusion/cpu/kernels/lanes.hpp"
#include "fusion/cpu/kernels/wide.hpp"

namespace hfta::fusion::cpu {
namespace {

constexpr std::int64_t kBlock = 64;  // rows of a group summed up by themselves, so that long sums keep their digits

template <typename T>
inline __attribute__((always_inline)) void normalize(const NormShape& shape, const T* x, const T* weight, const T* bias,
                                                     double eps, T* y, T* mean, T* inverse) {
  const std::int64_t n = shape.n;
  const T share = T{1} / static_cast<T>(n);
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    const T* const from = x + r * n;
    T* const to = y + r * n;
    const T center = sum_of(from, n) * share;
    const T variance = sum_over<T>(
                           n,
                           [=](std::int64_t i) __attribute__((always_inline)) {
                             const T d = from[i] - center;
                             return d * d;
                           }) *
                       share;
    const T scale = T{1} / std::sqrt(variance + static_cast<T>(eps));
    mean[r] = center;
    inverse[r] = scale;
    const std::int64_t table = r % shape.groups * n;
    if (weight != nullptr && bias != nullptr) {
      const T* const w = weight + table;
      const T* const b = bias + table;
      for (std::int64_t i = 0; i < n; ++i) to[i] = (from[i] - center) * scale * w[i] + b[i];
    } else {
      for (std::int64_t i = 0; i < n; ++i) to[i] = (from[i] - center) * scale;
      for (std::int64_t i = 0; weight != nullptr && i < n; ++i) to[i] *= weight[table + i];
      for (std::int64_t i = 0; bias != nullptr && i < n; ++i) to[i] += bias[table + i];
    }
  }
}

// dx of a row: inverse (g - mean of g - xn mean of (g xn)), where g = dy weight and xn is the normalized x.
template <typename T>
inline __attribute__((always_inline)) void input_gradient(std::int64_t n, const T* dy, const T* x, const T* weight,
                                                          T center, T scale, T* dx, bool add) {
  const auto g = [=](std::int64_t i) __attribute__((always_inline)) {
    return weight == nullptr ? dy[i] : dy[i] * weight[i];
  };
  const auto normal = [=](std::int64_t i) __attribute__((always_inline)) { return (x[i] - center) * scale; };
  const T share = T{1} / static_cast<T>(n);
  const T plain = sum_over<T>(n, g) * share;
  const T along = sum_over<T>(
                      n, [=](std::int64_t i) __attribute__((always_inline)) { return g(i) * normal(i); }) *
                  share;
  if (add) {
    for (std::int64_t i = 0; i < n; ++i) dx[i] += scale * (g(i) - plain - normal(i) * along);
  } else {
    for (std::int64_t i = 0; i < n; ++i) dx[i] = scale * (g(i) - plain - normal(i) * along);
  }
}

template <typename T>
inline __attribute__((always_inline)) void flush(T* part, std::int64_t n, T* sums) {
  for (std::int64_t i = 0; i < n; ++i) sums[i] += part[i];
  std::fill_n(part, n, T{0});
}

template <typename T>
inline __attribute__((always_inline)) void backward(const NormShape& shape, const T* dy, const T* x, const T* weight,
                                                    const T* mean, const T* inverse, const NormGradients<T>& to) {
  const std::int64_t n = shape.n, table = shape.groups * n;
  const bool sums = to.weight != nullptr || to.bias != nullptr;
  T* const dw = to.scratch;
  T* const db = to.scratch + table;
  if (sums) std::fill_n(to.scratch, 2 * table, T{0});
  if (to.weight != nullptr && !to.add_weight) std::fill_n(to.weight, table, T{0});
  if (to.bias != nullptr && !to.add_bias) std::fill_n(to.bias, table, T{0});
  const auto empty = [&] {
    if (to.weight != nullptr) flush(dw, table, to.weight);
    if (to.bias != nullptr) flush(db, table, to.bias);
  };
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    const std::int64_t at = r % shape.groups * n;
    const T* const d = dy + r * n;
    const T* const from = x + r * n;
    const T center = mean[r], scale = inverse[r];
    if (sums) {
      T* __restrict const pw = dw + at;
      T* __restrict const pb = db + at;
      for (std::int64_t i = 0; i < n; ++i) {
        pw[i] += d[i] * ((from[i] - center) * scale);
        pb[i] += d[i];
      }
    }
    if (to.x != nullptr) {
      input_gradient(n, d, from, weight == nullptr ? nullptr : weight + at, center, scale, to.x + r * n, to.add_x);
    }
    if (sums && (r + 1) % (kBlock * shape.groups) == 0) empty();
  }
  if (sums) empty();
}

}  // namespace

HFTA_WIDE void normalize_rows(const NormShape& shape, const float* x, const float* weight, const float* bias,
                              double eps, float* y, float* mean, float* inverse) {
  normalize(shape, x, weight, bias, eps, y, mean, inverse);
}
HFTA_WIDE void normalize_rows(const NormShape& shape, const double* x, const double* weight, const double* bias,
                              double eps, double* y, double* mean, double* inverse) {
  normalize(shape, x, weight, bias, eps, y, mean, inverse);
}
HFTA_WIDE void normalize_rows_backward(const NormShape& shape, const float* dy, const float* x, const float* weight,
                                       const float* mean, const float* inverse, const NormGradients<float>& to) {
  backward(shape, dy, x, weight, mean, inverse, to);
}
HFTA_WIDE void normalize_rows_backward(const NormShape& shape, const double* dy, const double* x, const double* weight,
                                       const double* mean, const double* inverse, const NormGradients<double>& to) {
  backward(shape, dy, x, weight, mean, inverse, to);
}

}  // namespace hfta::fusion::cpu
