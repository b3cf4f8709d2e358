#include "fusion/cpu/kernels/norm.hpp"

#include <algorithm>
#include <cmath>

#include "fusion/simd/multiversion.hpp"
#include "fusion/simd/vector.hpp"

namespace hfta::fusion::cpu {
namespace {

constexpr std::int64_t kBlock = 64;  // rows of a group summed up by themselves, so that long sums keep their digits

template <typename R, typename T>
inline __attribute__((always_inline)) void normalize(R, const NormShape& shape, const T* x, const T* weight,
                                                     const T* bias, double eps, T* y, T* mean, T* inverse) {
  using V = simd::Lanes<T, R::kBytes>;
  const std::int64_t n = shape.n;
  const T share = T{1} / static_cast<T>(n);
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    const T* const from = x + r * n;
    T* const to = y + r * n;
    const T center = simd::sum_of<V>(from, n) * share;
    const T variance = simd::sum_over<V>(
                           n,
                           [=](auto at) __attribute__((always_inline)) {
                             const V d = at(from) - center;
                             return d * d;
                           }) *
                       share;
    const T scale = T{1} / std::sqrt(variance + static_cast<T>(eps));
    mean[r] = center;
    inverse[r] = scale;
    const std::int64_t table = shape.groups == 1 ? 0 : r % shape.groups * n;
    simd::for_each_stretch<V>(
        n, [=](auto at) __attribute__((always_inline)) {
          V v = (at(from) - center) * scale;
          if (weight != nullptr) v *= at(weight + table);
          if (bias != nullptr) v += at(bias + table);
          at.store(to, v);
        });
  }
}

// One row. dx is inverse (g - mean of g - xn mean of (g xn)), where g = dy weight and xn is the normalized x.
template <typename V, typename T>
inline __attribute__((always_inline)) void row_backward(std::int64_t n, const T* dy, const T* x, const T* weight,
                                                        T center, T scale, const NormGradients<T>& to, T* dx, T* dw,
                                                        T* db) {
  const auto g = [=](auto at) __attribute__((always_inline)) {
    return weight == nullptr ? at(dy) : at(dy) * at(weight);
  };
  const auto normal = [=](auto at) __attribute__((always_inline)) { return (at(x) - center) * scale; };
  V plain_sums, along_sums;
  simd::for_each_stretch<V>(
      n, [&](auto at) __attribute__((always_inline)) {
        const V d = at(dy), xn = normal(at), given = g(at);
        plain_sums += given;
        along_sums += given * xn;  // given is 0 where no element is
        if (to.weight != nullptr) at.store(dw, at(dw) + d * xn);
        if (to.bias != nullptr) at.store(db, at(db) + d);
      });
  if (dx == nullptr) return;
  const T share = T{1} / static_cast<T>(n);
  const T plain = simd::total_of(plain_sums) * share, along = simd::total_of(along_sums) * share;
  simd::for_each_stretch<V>(
      n, [&](auto at) __attribute__((always_inline)) {
        const V d = scale * (g(at) - plain - normal(at) * along);
        at.store(dx, to.add_x ? at(dx) + d : d);
      });
}

template <typename T>
inline __attribute__((always_inline)) void flush(T* part, std::int64_t n, T* sums) {
  for (std::int64_t i = 0; i < n; ++i) sums[i] += part[i];
  std::fill_n(part, n, T{0});
}

template <typename R, typename T>
inline __attribute__((always_inline)) void backward(R, const NormShape& shape, const T* dy, const T* x, const T* weight,
                                                    const T* mean, const T* inverse, const NormGradients<T>& to) {
  const std::int64_t n = shape.n, table = shape.groups * n;
  T* const dw = to.scratch;
  T* const db = to.scratch + table;
  std::fill_n(to.scratch, 2 * table, T{0});
  if (to.weight != nullptr && !to.add_weight) std::fill_n(to.weight, table, T{0});
  if (to.bias != nullptr && !to.add_bias) std::fill_n(to.bias, table, T{0});
  const auto empty = [&] {
    if (to.weight != nullptr) flush(dw, table, to.weight);
    if (to.bias != nullptr) flush(db, table, to.bias);
  };
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    const std::int64_t at = shape.groups == 1 ? 0 : r % shape.groups * n;
    row_backward<simd::Lanes<T, R::kBytes>>(n, dy + r * n, x + r * n, weight == nullptr ? nullptr : weight + at,
                                            mean[r], inverse[r], to, to.x == nullptr ? nullptr : to.x + r * n, dw + at,
                                            db + at);
    if ((r + 1) % (kBlock * shape.groups) == 0) empty();
  }
  empty();
}

}  // namespace

void normalize_rows(const NormShape& shape, const float* x, const float* weight, const float* bias, double eps,
                    float* y, float* mean, float* inverse) {
  simd::multiversion([&](auto r) { normalize(r, shape, x, weight, bias, eps, y, mean, inverse); });
}
void normalize_rows(const NormShape& shape, const double* x, const double* weight, const double* bias, double eps,
                    double* y, double* mean, double* inverse) {
  simd::multiversion([&](auto r) { normalize(r, shape, x, weight, bias, eps, y, mean, inverse); });
}
void normalize_rows_backward(const NormShape& shape, const float* dy, const float* x, const float* weight,
                             const float* mean, const float* inverse, const NormGradients<float>& to) {
  simd::multiversion([&](auto r) { backward(r, shape, dy, x, weight, mean, inverse, to); });
}
void normalize_rows_backward(const NormShape& shape, const double* dy, const double* x, const double* weight,
                             const double* mean, const double* inverse, const NormGradients<double>& to) {
  simd::multiversion([&](auto r) { backward(r, shape, dy, x, weight, mean, inverse, to); });
}

}  // namespace hfta::fusion::cpu
