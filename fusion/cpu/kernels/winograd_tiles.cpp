#include "fusion/cpu/kernels/winograd_tiles.hpp"

#include "fusion/simd/multiversion.hpp"
#include "fusion/simd/vector.hpp"

namespace hfta::fusion::cpu {
namespace {

static_assert(kTileLanes == simd::kLanes);
using simd::detail::for_each_part;

// A row of B^T is the sum or the difference of two rows.
constexpr std::int64_t kOne[] = {0, 1, 2, 1}, kOther[] = {2, 2, 1, 3};
template <std::size_t kRow, typename V>
inline __attribute__((always_inline)) V by_b(const V& one, const V& other) {
  if constexpr (kRow == 1) return one + other;
  return one - other;
}

// A row of A times two rows.
template <std::size_t kRow, typename V>
inline __attribute__((always_inline)) V by_a(const V& one, const V& other) {
  if constexpr (kRow == 0) return one;
  if constexpr (kRow == 1) return one + other;
  if constexpr (kRow == 2) return one - other;
  return V() - other;
}

// Adds a column of m, times A from the right.
template <std::size_t kColumn, typename V>
inline __attribute__((always_inline)) void add_column(const V& m, V (&y)[2]) {
  if constexpr (kColumn == 0) y[0] = m;
  if constexpr (kColumn == 1 || kColumn == 2) y[0] += m;
  if constexpr (kColumn == 1) y[1] = m;
  if constexpr (kColumn > 1) y[1] = y[1] - m;
}

// A row of G times three.
template <std::size_t kRow, typename V>
inline __attribute__((always_inline)) V by_g(const V& a, const V& b, const V& c) {
  if constexpr (kRow == 0) return a;
  if constexpr (kRow == 1) return ((a + c) + b) * V(0.5F);
  if constexpr (kRow == 2) return ((a + c) - b) * V(0.5F);
  return c;
}

// A row of G^T times four.
template <std::size_t kRow, typename V>
inline __attribute__((always_inline)) V by_gt(const V& a, const V& b, const V& c, const V& d) {
  if constexpr (kRow == 0) return a + (b + c) * V(0.5F);
  if constexpr (kRow == 1) return (b - c) * V(0.5F);
  return (b + c) * V(0.5F) + d;
}

template <typename V>
inline __attribute__((always_inline)) V at_least_zero(const V& v) {
  using Part = typename V::Part;
  return V::of(
      v, v, [](const Part& a, const Part&) __attribute__((always_inline))->Part { return a < Part{} ? Part{} : a; });
}

// Row by row of the transformed tile: so four sums at a time are in registers.
template <typename R, typename T>
inline __attribute__((always_inline)) void source_row(R, const TileRow& r, const T* from, T* to) {
  using V = simd::Lanes<T, R::kBytes>;
  for (std::int64_t t = 0; t < r.tiles; ++t, from += 2 * r.pixel, to += r.tile) {
    simd::for_each_stretch<V>(
        r.channels, [&](auto at) __attribute__((always_inline)) {
          for_each_part<4>([&](auto i) __attribute__((always_inline)) {
            const T* const one = from + kOne[i] * r.row;
            const T* const other = from + kOther[i] * r.row;
            V rows[4];
            for_each_part<4>([&](auto j) __attribute__((always_inline)) {
              rows[j] = by_b<i>(at(one + static_cast<std::int64_t>(j) * r.pixel),
                                at(other + static_cast<std::int64_t>(j) * r.pixel));
            });
            for_each_part<4>([&](auto j) __attribute__((always_inline)) {
              by_b<j>(rows[kOne[j]], rows[kOther[j]]).store(to + static_cast<std::int64_t>(4 * i + j) * r.place + at.i);
            });
          });
        });
  }
}

template <typename R, typename T>
inline __attribute__((always_inline)) void gradient_row(R, const TileRow& r, const T* from, T* to) {
  using V = simd::Lanes<T, R::kBytes>;
  for (std::int64_t t = 0; t < r.tiles; ++t, from += 2 * r.pixel, to += r.tile) {
    simd::for_each_stretch<V>(
        r.channels, [&](auto at) __attribute__((always_inline)) {
          const V y[2][2] = {{at(from), at(from + r.pixel)}, {at(from + r.row), at(from + r.row + r.pixel)}};
          for_each_part<4>([&](auto i) __attribute__((always_inline)) {
            const V one = by_a<i>(y[0][0], y[1][0]), other = by_a<i>(y[0][1], y[1][1]);
            for_each_part<4>([&](auto j) __attribute__((always_inline)) {
              by_a<j>(one, other).store(to + static_cast<std::int64_t>(4 * i + j) * r.place + at.i);
            });
          });
        });
  }
}

template <typename V, typename At, typename T>
inline __attribute__((always_inline)) void finish_pixel(const TileFinish<T>& f, const At& at, V sum, T* to) {
  if (f.bias != nullptr) sum += at(f.bias);
  if (f.add) sum += at(to);
  at.store(to, f.relu ? at_least_zero(sum) : sum);
}

// Column by column of the transformed tile, so that no more than the four sums stay in registers.
template <typename R, typename T>
inline __attribute__((always_inline)) void finish_row(R, const TileRow& r, const TileFinish<T>& f, const T* from,
                                                      T* to) {
  using V = simd::Lanes<T, R::kBytes>;
  for (std::int64_t t = 0; t < r.tiles; ++t, from += r.tile, to += 2 * r.pixel) {
    const bool second_row = f.rows > 1, second_column = 2 * t + 1 < f.columns;
    simd::for_each_stretch<V>(
        r.channels, [&](auto at) __attribute__((always_inline)) {
          V y[2][2];
          for_each_part<4>([&](auto j) __attribute__((always_inline)) {
            const auto m = [&](std::int64_t i) __attribute__((always_inline)) {
              return V::load(from + (4 * i + static_cast<std::int64_t>(j)) * r.place + at.i);
            };
            const V one = m(1), other = m(2);
            add_column<j>(m(0) + one + other, y[0]);
            add_column<j>(one - other - m(3), y[1]);
          });
          finish_pixel(f, at, y[0][0], to);
          if (second_column) finish_pixel(f, at, y[0][1], to + r.pixel);
          if (second_row) finish_pixel(f, at, y[1][0], to + r.row);
          if (second_row && second_column) finish_pixel(f, at, y[1][1], to + r.row + r.pixel);
        });
  }
}

template <typename R, typename T>
inline __attribute__((always_inline)) void kernels_to_places(R, const TileKernels& k, const T* taps, T* places) {
  using V = simd::Lanes<T, R::kBytes>;
  for (std::int64_t row = 0; row < k.rows; ++row, taps += k.ld, places += k.ld) {
    simd::for_each_stretch<V>(
        k.columns, [&](auto at) __attribute__((always_inline)) {
          for_each_part<4>([&](auto i) __attribute__((always_inline)) {
            V g[3];
            for_each_part<3>([&](auto j) __attribute__((always_inline)) {
              const T* const tap = taps + static_cast<std::int64_t>(j) * k.tap;
              g[j] = by_g<i>(at(tap), at(tap + 3 * k.tap), at(tap + 6 * k.tap));
            });
            for_each_part<4>([&](auto j) __attribute__((always_inline)) {
              by_g<j>(g[0], g[1], g[2]).store(places + static_cast<std::int64_t>(4 * i + j) * k.place + at.i);
            });
          });
        });
  }
}

template <typename R, typename T>
inline __attribute__((always_inline)) void places_to_kernels(R, const TileKernels& k, const T* places, T* taps) {
  using V = simd::Lanes<T, R::kBytes>;
  for (std::int64_t row = 0; row < k.rows; ++row, places += k.ld, taps += k.tap) {
    simd::for_each_stretch<V>(
        k.columns, [&](auto at) __attribute__((always_inline)) {
          for_each_part<3>([&](auto i) __attribute__((always_inline)) {
            V w[4];
            for_each_part<4>([&](auto j) __attribute__((always_inline)) {
              const T* const place = places + static_cast<std::int64_t>(j) * k.place + at.i;
              w[j] = by_gt<i>(V::load(place), V::load(place + 4 * k.place), V::load(place + 8 * k.place),
                              V::load(place + 12 * k.place));
            });
            for_each_part<3>([&](auto j) __attribute__((always_inline)) {
              at.store(taps + static_cast<std::int64_t>(3 * i + j) * k.ld, by_gt<j>(w[0], w[1], w[2], w[3]));
            });
          });
        });
  }
}

}  // namespace

void transform_source(const TileRow& row, const float* from, float* to) {
  simd::multiversion([&](auto r) { source_row(r, row, from, to); });
}
void transform_source(const TileRow& row, const double* from, double* to) {
  simd::multiversion([&](auto r) { source_row(r, row, from, to); });
}
void transform_gradient(const TileRow& row, const float* from, float* to) {
  simd::multiversion([&](auto r) { gradient_row(r, row, from, to); });
}
void transform_gradient(const TileRow& row, const double* from, double* to) {
  simd::multiversion([&](auto r) { gradient_row(r, row, from, to); });
}
void finish_tiles(const TileRow& row, const TileFinish<float>& finish, const float* from, float* to) {
  simd::multiversion([&](auto r) { finish_row(r, row, finish, from, to); });
}
void finish_tiles(const TileRow& row, const TileFinish<double>& finish, const double* from, double* to) {
  simd::multiversion([&](auto r) { finish_row(r, row, finish, from, to); });
}
void transform_kernels(const TileKernels& kernels, const float* taps, float* places) {
  simd::multiversion([&](auto r) { kernels_to_places(r, kernels, taps, places); });
}
void transform_kernels(const TileKernels& kernels, const double* taps, double* places) {
  simd::multiversion([&](auto r) { kernels_to_places(r, kernels, taps, places); });
}
void finish_kernels(const TileKernels& kernels, const float* places, float* taps) {
  simd::multiversion([&](auto r) { places_to_kernels(r, kernels, places, taps); });
}
void finish_kernels(const TileKernels& kernels, const double* places, double* taps) {
  simd::multiversion([&](auto r) { places_to_kernels(r, kernels, places, taps); });
}

}  // namespace hfta::fusion::cpu
