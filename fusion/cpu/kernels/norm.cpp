#include "fusion/cpu/kernels/norm.hpp"

#include <algorithm>
#include <cmath>

#include "fusion/simd/multiversion.hpp"
#include "fusion/simd/vector.hpp"

namespace hfta::fusion::cpu {
namespace {

constexpr std::int64_t kBlock = 64;  // rows of a group summed up by themselves, so that long sums keep their digits
constexpr std::int64_t kCost = 3;    // passes over a row

// Rows whose sums are one block.
std::int64_t block_rows(const NormShape& shape) { return kBlock * shape.groups; }

template <typename R, typename T>
inline __attribute__((always_inline)) void normalize(R, const NormShape& shape, std::int64_t first, std::int64_t rows,
                                                     const T* x, const T* weight, const T* bias, double eps, T* y,
                                                     T* mean, T* inverse) {
  using V = simd::Lanes<T, R::kBytes>;
  const std::int64_t n = shape.n;
  const T share = T{1} / static_cast<T>(n);
  for (std::int64_t r = first; r < first + rows; ++r) {
    const T* const from = x + r * n;
    T* const to = y + r * n;
    const T center = shape.centered ? simd::sum_of<V>(from, n) * share : T{0};
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

// One row. dx is inverse (g - mean of g - xn mean of (g xn)), where g = dy weight and xn is the normalized x; without
// the mean of g, if x was not centered.
template <typename V, typename T>
inline __attribute__((always_inline)) void row_backward(const NormShape& shape, const T* dy, const T* x,
                                                        const T* weight, T center, T scale, const NormGradients<T>& to,
                                                        T* dx, T* dw, T* db) {
  const std::int64_t n = shape.n;
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
  const T plain = shape.centered ? simd::total_of(plain_sums) * share : T{0},
          along = simd::total_of(along_sums) * share;
  simd::for_each_stretch<V>(
      n, [&](auto at) __attribute__((always_inline)) {
        const V d = scale * (g(at) - plain - normal(at) * along);
        at.store(dx, to.add_x ? at(dx) + d : d);
      });
}

// Rows [first, first + rows), of one block: its sums to dw and db.
template <typename R, typename T>
inline __attribute__((always_inline)) void backward(R, const NormShape& shape, std::int64_t first, std::int64_t rows,
                                                    const T* dy, const T* x, const T* weight, const T* mean,
                                                    const T* inverse, const NormGradients<T>& to, T* dw, T* db) {
  const std::int64_t n = shape.n, table = shape.groups * n;
  std::fill_n(dw, table, T{0});
  std::fill_n(db, table, T{0});
  for (std::int64_t r = first; r < first + rows; ++r) {
    const std::int64_t at = shape.groups == 1 ? 0 : r % shape.groups * n;
    row_backward<simd::Lanes<T, R::kBytes>>(shape, dy + r * n, x + r * n, weight == nullptr ? nullptr : weight + at,
                                            mean[r], inverse[r], to, to.x == nullptr ? nullptr : to.x + r * n, dw + at,
                                            db + at);
  }
}

// sums = or += the blocks' parts, in order. Parts lie 2 `table` elements apart.
template <typename T>
void add_blocks(const T* parts, std::int64_t blocks, std::int64_t table, T* sums, bool add) {
  if (!add) std::fill_n(sums, table, T{0});
  for (std::int64_t b = 0; b < blocks; ++b) {
    const T* __restrict part = parts + 2 * b * table;
    for (std::int64_t i = 0; i < table; ++i) sums[i] += part[i];
  }
}

template <typename T>
void normalize_of(Team* team, const NormShape& shape, const T* x, const T* weight, const T* bias, double eps, T* y,
                  T* mean, T* inverse) {
  share(team, stretches_of(shape.rows, kCost * shape.n), [&](std::int64_t first, std::int64_t rows, int) {
    simd::multiversion([&](auto r) { normalize(r, shape, first, rows, x, weight, bias, eps, y, mean, inverse); });
  });
}

template <typename T>
void backward_of(Team* team, const NormShape& shape, const T* dy, const T* x, const T* weight, const T* mean,
                 const T* inverse, const NormGradients<T>& to) {
  const std::int64_t block = block_rows(shape), table = shape.groups * shape.n;
  share(team, stretches_of(shape.rows, kCost * shape.n, block), [&](std::int64_t begin, std::int64_t size, int) {
    for (std::int64_t first = begin; first < begin + size; first += block) {
      T* const dw = to.scratch + first / block * 2 * table;
      const std::int64_t rows = std::min(block, begin + size - first);
      simd::multiversion(
          [&](auto r) { backward(r, shape, first, rows, dy, x, weight, mean, inverse, to, dw, dw + table); });
    }
  });
  const std::int64_t blocks = (shape.rows + block - 1) / block;
  if (to.weight != nullptr) add_blocks(to.scratch, blocks, table, to.weight, to.add_weight);
  if (to.bias != nullptr) add_blocks(to.scratch + table, blocks, table, to.bias, to.add_bias);
}

}  // namespace

std::int64_t NormShape::scratch() const {
  const std::int64_t block = block_rows(*this);
  return (rows + block - 1) / block * 2 * groups * n;
}

void normalize_rows(Team* team, const NormShape& shape, const float* x, const float* weight, const float* bias,
                    double eps, float* y, float* mean, float* inverse) {
  normalize_of(team, shape, x, weight, bias, eps, y, mean, inverse);
}
void normalize_rows(Team* team, const NormShape& shape, const double* x, const double* weight, const double* bias,
                    double eps, double* y, double* mean, double* inverse) {
  normalize_of(team, shape, x, weight, bias, eps, y, mean, inverse);
}
void normalize_rows_backward(Team* team, const NormShape& shape, const float* dy, const float* x, const float* weight,
                             const float* mean, const float* inverse, const NormGradients<float>& to) {
  backward_of(team, shape, dy, x, weight, mean, inverse, to);
}
void normalize_rows_backward(Team* team, const NormShape& shape, const double* dy, const double* x,
                             const double* weight, const double* mean, const double* inverse,
                             const NormGradients<double>& to) {
  backward_of(team, shape, dy, x, weight, mean, inverse, to);
}

}  // namespace hfta::fusion::cpu
