#include "fusion/cpu/kernels/winograd_tiles.hpp"

#include <algorithm>

#include "fusion/simd/multiversion.hpp"
#include "fusion/simd/vector.hpp"

namespace hfta::fusion::cpu {
namespace {

static_assert(kTileLanes == simd::kLanes);

// Row i of B^T: row kOne[i] of d plus kSign[i] times row kOther[i].
constexpr std::int64_t kOne[] = {0, 1, 2, 1}, kOther[] = {2, 2, 1, 3};
constexpr int kSign[] = {-1, 1, -1, -1};
constexpr int kA[4][2] = {{1, 0}, {1, 1}, {1, -1}, {0, -1}};
constexpr float kG[4][3] = {{1, 0, 0}, {0.5F, 0.5F, 0.5F}, {0.5F, -0.5F, 0.5F}, {0, 0, 1}};

template <typename R, typename T>
inline __attribute__((always_inline)) void source_row(R, const TileRow& r, const T* from, T* to) {
  using V = simd::Lanes<T, R::kBytes>;
  for (std::int64_t t = 0; t < r.tiles; ++t, from += 2 * r.pixel, to += r.tile) {
    for (std::int64_t i = 0; i < 4; ++i) {
      const T* one = from + kOne[i] * r.row;
      const T* other = from + kOther[i] * r.row;
      T* const out = to + 4 * i * r.place;
      const V sign = static_cast<T>(kSign[i]);
      simd::for_each_stretch<V>(
          r.channels, [&](auto at) __attribute__((always_inline)) {
            V columns[4];
            for (std::int64_t j = 0; j < 4; ++j) columns[j] = at(one + j * r.pixel) + sign * at(other + j * r.pixel);
            (columns[0] - columns[2]).store(out + at.i);
            (columns[1] + columns[2]).store(out + r.place + at.i);
            (columns[2] - columns[1]).store(out + 2 * r.place + at.i);
            (columns[1] - columns[3]).store(out + 3 * r.place + at.i);
          });
    }
  }
}

template <typename R, typename T>
inline __attribute__((always_inline)) void gradient_row(R, const TileRow& r, const T* from, T* to) {
  using V = simd::Lanes<T, R::kBytes>;
  for (std::int64_t t = 0; t < r.tiles; ++t, from += 2 * r.pixel, to += r.tile) {
    for (std::int64_t i = 0; i < 4; ++i) {
      const T* one = from;
      const T* other = from + r.row;
      T* const out = to + 4 * i * r.place;
      const V first = static_cast<T>(kA[i][0]), second = static_cast<T>(kA[i][1]);
      simd::for_each_stretch<V>(
          r.channels, [&](auto at) __attribute__((always_inline)) {
            const V a = first * at(one) + second * at(other);
            const V b = first * at(one + r.pixel) + second * at(other + r.pixel);
            a.store(out + at.i);
            (a + b).store(out + r.place + at.i);
            (a - b).store(out + 2 * r.place + at.i);
            (V() - b).store(out + 3 * r.place + at.i);
          });
    }
  }
}

// Pixel [i, j] of a tile: row i of A^T is, from place i on, 1 1 1 or 1 -1 -1.
template <typename V, typename T>
inline __attribute__((always_inline)) void result_pixel(const TileRow& r, std::int64_t i, std::int64_t j, bool add,
                                                        const T* from, T* to) {
  const T* m = from + (4 * i + j) * r.place;
  const V down = i == 0 ? T{1} : T{-1}, right = j == 0 ? T{1} : T{-1};
  simd::for_each_stretch<V>(
      r.channels, [&](auto at) __attribute__((always_inline)) {
        V columns[3];
        for (std::int64_t k = 0; k < 3; ++k) {
          const T* const column = m + k * r.place + at.i;
          columns[k] = V::load(column) + down * (V::load(column + 4 * r.place) + V::load(column + 8 * r.place));
        }
        V sum = columns[0] + right * (columns[1] + columns[2]);
        if (add) sum += at(to);
        at.store(to, sum);
      });
}

template <typename R, typename T>
inline __attribute__((always_inline)) void result_row(R, const TileRow& r, const TileResult& f, const T* from, T* to) {
  for (std::int64_t t = 0; t < r.tiles; ++t, from += r.tile) {
    for (std::int64_t i = 0; i < std::min<std::int64_t>(f.rows, 2); ++i) {
      for (std::int64_t j = 0; j < std::min<std::int64_t>(f.columns - 2 * t, 2); ++j) {
        result_pixel<simd::Lanes<T, R::kBytes>>(r, i, j, f.add, from, to + i * r.row + (2 * t + j) * r.pixel);
      }
    }
  }
}

template <typename R, typename T>
inline __attribute__((always_inline)) void kernels_to_places(R, const TileKernels& k, const T* taps, T* places) {
  using V = simd::Lanes<T, R::kBytes>;
  for (std::int64_t row = 0; row < k.rows; ++row, taps += k.ld, places += k.ld) {
    for (std::int64_t i = 0; i < 4; ++i) {
      T* const out = places + 4 * i * k.place;
      const V x = static_cast<T>(kG[i][0]), y = static_cast<T>(kG[i][1]), z = static_cast<T>(kG[i][2]);
      simd::for_each_stretch<V>(
          k.columns, [&](auto at) __attribute__((always_inline)) {
            V g[3];
            for (std::int64_t j = 0; j < 3; ++j) {
              const T* const tap = taps + j * k.tap;
              g[j] = x * at(tap) + y * at(tap + 3 * k.tap) + z * at(tap + 6 * k.tap);
            }
            g[0].store(out + at.i);
            ((g[0] + g[2] + g[1]) * V(0.5F)).store(out + k.place + at.i);
            ((g[0] + g[2] - g[1]) * V(0.5F)).store(out + 2 * k.place + at.i);
            g[2].store(out + 3 * k.place + at.i);
          });
    }
  }
}

template <typename R, typename T>
inline __attribute__((always_inline)) void places_to_kernels(R, const TileKernels& k, const T* places, T* taps) {
  using V = simd::Lanes<T, R::kBytes>;
  for (std::int64_t row = 0; row < k.rows; ++row, places += k.ld, taps += k.tap) {
    for (std::int64_t i = 0; i < 3; ++i) {
      T* const out = taps + 3 * i * k.ld;
      simd::for_each_stretch<V>(
          k.columns, [&](auto at) __attribute__((always_inline)) {
            V sums[4];
            for (std::int64_t j = 0; j < 4; ++j) {
              for (std::int64_t p = 0; p < 4; ++p)
                sums[j] += V(static_cast<T>(kG[p][i])) * V::load(places + (4 * p + j) * k.place + at.i);
            }
            at.store(out, sums[0] + (sums[1] + sums[2]) * V(0.5F));
            at.store(out + k.ld, (sums[1] - sums[2]) * V(0.5F));
            at.store(out + 2 * k.ld, (sums[1] + sums[2]) * V(0.5F) + sums[3]);
          });
    }
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
void transform_result(const TileRow& row, const TileResult& result, const float* from, float* to) {
  simd::multiversion([&](auto r) { result_row(r, row, result, from, to); });
}
void transform_result(const TileRow& row, const TileResult& result, const double* from, double* to) {
  simd::multiversion([&](auto r) { result_row(r, row, result, from, to); });
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
