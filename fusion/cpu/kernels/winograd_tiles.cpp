#include "fusion/cpu/kernels/winograd_tiles.hpp"

#include "fusion/simd/multiversion.hpp"
#include "fusion/simd/vector.hpp"

namespace hfta::fusion::cpu {
namespace {

static_assert(kTileLanes == simd::kLanes);

// A matrix of the header, or its transpose, as a map from kFrom vectors to kTo: row<i>(d) is element i of what it makes
// of d(0), d(1), ...
template <std::size_t r>
struct Source {  // B^T
  static constexpr std::size_t kFrom = r + 1, kTo = r + 1;
  template <std::size_t i, typename D>
  static inline __attribute__((always_inline)) auto row(const D& d) {
    if constexpr (r == 2) {
      if constexpr (i == 0) return d(0) - d(1);
      if constexpr (i == 1) return d(1);
      if constexpr (i == 2) return d(2) - d(1);
    } else {
      if constexpr (i == 0) return d(0) - d(2);
      if constexpr (i == 1) return d(1) + d(2);
      if constexpr (i == 2) return d(2) - d(1);
      if constexpr (i == 3) return d(1) - d(3);
    }
  }
};

template <std::size_t r>
struct Gradient {  // A
  static constexpr std::size_t kFrom = 2, kTo = r + 1;
  template <std::size_t i, typename D>
  static inline __attribute__((always_inline)) auto row(const D& y) {
    if constexpr (i == 0) return y(0);
    if constexpr (i == 1) return y(0) + y(1);
    if constexpr (r == 2) {
      if constexpr (i == 2) return y(1);
    } else {
      if constexpr (i == 2) return y(0) - y(1);
      if constexpr (i == 3) return decltype(y(1))() - y(1);
    }
  }
};

template <std::size_t r>
struct Result {  // A^T
  static constexpr std::size_t kFrom = r + 1, kTo = 2;
  template <std::size_t i, typename D>
  static inline __attribute__((always_inline)) auto row(const D& m) {
    if constexpr (r == 2) {
      return m(i) + m(i + 1);
    } else {
      if constexpr (i == 0) return m(0) + (m(1) + m(2));
      if constexpr (i == 1) return (m(1) - m(2)) - m(3);
    }
  }
};

template <std::size_t r>
struct Kernels {  // G
  static constexpr std::size_t kFrom = r, kTo = r + 1;
  template <std::size_t i, typename D>
  static inline __attribute__((always_inline)) auto row(const D& g) {
    if constexpr (i == 0) return g(0);
    if constexpr (i == r) return g(r - 1);
    if constexpr (r == 2) {
      if constexpr (i == 1) return g(0) + g(1);
    } else {
      using V = decltype(g(0));
      if constexpr (i == 1) return (g(0) + g(2) + g(1)) * V(0.5F);
      if constexpr (i == 2) return (g(0) + g(2) - g(1)) * V(0.5F);
    }
  }
};

template <std::size_t r>
struct Taps {  // G^T
  static constexpr std::size_t kFrom = r + 1, kTo = r;
  template <std::size_t i, typename D>
  static inline __attribute__((always_inline)) auto row(const D& p) {
    if constexpr (r == 2) {
      return p(i) + p(i + 1);
    } else {
      using V = decltype(p(0));
      if constexpr (i == 0) return p(0) + (p(1) + p(2)) * V(0.5F);
      if constexpr (i == 1) return (p(1) - p(2)) * V(0.5F);
      if constexpr (i == 2) return (p(1) + p(2)) * V(0.5F) + p(3);
    }
  }
};

// put(i, j, element [i, j] of M d M^T), where d(i, j) is an element of d.
template <typename M, typename V, typename D, typename Put>
inline __attribute__((always_inline)) void both_sides(D d, Put put) {
  simd::for_each_index<M::kTo>([&](auto i) __attribute__((always_inline)) {
    V columns[M::kFrom];
    simd::for_each_index<M::kFrom>([&](auto j) __attribute__((always_inline)) {
      columns[j] = M::template row<i>([&](std::size_t k) __attribute__((always_inline))->V { return d(k, j); });
    });
    simd::for_each_index<M::kTo>([&](auto j) __attribute__((always_inline)) {
      put(i, j, M::template row<j>([&](std::size_t k) __attribute__((always_inline))->V { return columns[k]; }));
    });
  });
}

// Transforms tiles: M::kFrom x M::kFrom pixels of each become places.
template <typename M, typename R, typename T>
inline __attribute__((always_inline)) void to_places(R, const TileRow& r, const T* from, T* to) {
  using V = simd::Lanes<T, R::kBytes>;
  for (std::int64_t t = 0; t < r.tiles; ++t, from += 2 * r.pixel, to += r.tile) {
    simd::for_each_stretch<V>(
        r.channels, [&](auto at) __attribute__((always_inline)) {
          both_sides<M, V>(
              [&](std::size_t i, std::size_t j) __attribute__((always_inline)) {
                return at(from + static_cast<std::int64_t>(i) * r.row + static_cast<std::int64_t>(j) * r.pixel);
              },
              [&](std::size_t i, std::size_t j, const V& v) __attribute__((always_inline)) {
                v.store(to + static_cast<std::int64_t>(i * M::kTo + j) * r.place + at.i);
              });
        });
  }
}

template <typename M, typename R, typename T>
inline __attribute__((always_inline)) void to_pixels(R, const TileRow& r, const TileResult& f, const T* from, T* to) {
  using V = simd::Lanes<T, R::kBytes>;
  for (std::int64_t t = 0; t < r.tiles; ++t, from += r.tile, to += 2 * r.pixel) {
    simd::for_each_stretch<V>(
        r.channels, [&](auto at) __attribute__((always_inline)) {
          both_sides<M, V>(
              [&](std::size_t i, std::size_t j) __attribute__((always_inline)) {
                return V::load(from + static_cast<std::int64_t>(i * M::kFrom + j) * r.place + at.i);
              },
              [&](std::size_t i, std::size_t j, const V& v) __attribute__((always_inline)) {
                const auto row = static_cast<std::int64_t>(i), column = static_cast<std::int64_t>(j);
                if (row >= f.rows || 2 * t + column >= f.columns) return;
                T* const pixel = to + row * r.row + column * r.pixel;
                at.store(pixel, f.add ? at(pixel) + v : v);
              });
        });
  }
}

template <std::size_t r, typename R, typename T>
inline __attribute__((always_inline)) void kernels_to_places(R, const TileKernels& k, const T* taps, T* places) {
  using V = simd::Lanes<T, R::kBytes>;
  for (std::int64_t row = 0; row < k.rows; ++row, taps += k.tap_row, places += k.place_row) {
    simd::for_each_stretch<V>(
        k.columns, [&](auto at) __attribute__((always_inline)) {
          both_sides<Kernels<r>, V>(
              [&](std::size_t i, std::size_t j) __attribute__((always_inline)) {
                return at(taps + static_cast<std::int64_t>(i) * k.below + static_cast<std::int64_t>(j) * k.beside);
              },
              [&](std::size_t i, std::size_t j, const V& v) __attribute__((always_inline)) {
                v.store(places + static_cast<std::int64_t>(i * (r + 1) + j) * k.place + at.i);
              });
        });
  }
}

template <std::size_t r, typename R, typename T>
inline __attribute__((always_inline)) void places_to_kernels(R, const TileKernels& k, const T* places, T* taps) {
  using V = simd::Lanes<T, R::kBytes>;
  for (std::int64_t row = 0; row < k.rows; ++row, places += k.place_row, taps += k.tap_row) {
    simd::for_each_stretch<V>(
        k.columns, [&](auto at) __attribute__((always_inline)) {
          both_sides<Taps<r>, V>(
              [&](std::size_t i, std::size_t j) __attribute__((always_inline)) {
                return V::load(places + static_cast<std::int64_t>(i * (r + 1) + j) * k.place + at.i);
              },
              [&](std::size_t i, std::size_t j, const V& v) __attribute__((always_inline)) {
                at.store(taps + static_cast<std::int64_t>(i) * k.below + static_cast<std::int64_t>(j) * k.beside, v);
              });
        });
  }
}

template <typename T>
void source(const TileRow& row, const T* from, T* to) {
  row.r == 2 ? simd::multiversion([&](auto r) { to_places<Source<2>>(r, row, from, to); })
             : simd::multiversion([&](auto r) { to_places<Source<3>>(r, row, from, to); });
}
template <typename T>
void gradient(const TileRow& row, const T* from, T* to) {
  row.r == 2 ? simd::multiversion([&](auto r) { to_places<Gradient<2>>(r, row, from, to); })
             : simd::multiversion([&](auto r) { to_places<Gradient<3>>(r, row, from, to); });
}
template <typename T>
void result(const TileRow& row, const TileResult& result, const T* from, T* to) {
  row.r == 2 ? simd::multiversion([&](auto r) { to_pixels<Result<2>>(r, row, result, from, to); })
             : simd::multiversion([&](auto r) { to_pixels<Result<3>>(r, row, result, from, to); });
}
template <typename T>
void kernels(const TileKernels& kernels, const T* taps, T* places) {
  kernels.r == 2 ? simd::multiversion([&](auto r) { kernels_to_places<2>(r, kernels, taps, places); })
                 : simd::multiversion([&](auto r) { kernels_to_places<3>(r, kernels, taps, places); });
}
template <typename T>
void finish(const TileKernels& kernels, const T* places, T* taps) {
  kernels.r == 2 ? simd::multiversion([&](auto r) { places_to_kernels<2>(r, kernels, places, taps); })
                 : simd::multiversion([&](auto r) { places_to_kernels<3>(r, kernels, places, taps); });
}

}  // namespace

void transform_source(const TileRow& row, const float* from, float* to) { source(row, from, to); }
void transform_source(const TileRow& row, const double* from, double* to) { source(row, from, to); }
void transform_gradient(const TileRow& row, const float* from, float* to) { gradient(row, from, to); }
void transform_gradient(const TileRow& row, const double* from, double* to) { gradient(row, from, to); }
void transform_result(const TileRow& row, const TileResult& pixels, const float* from, float* to) {
  result(row, pixels, from, to);
}
void transform_result(const TileRow& row, const TileResult& pixels, const double* from, double* to) {
  result(row, pixels, from, to);
}
void transform_kernels(const TileKernels& all, const float* taps, float* places) { kernels(all, taps, places); }
void transform_kernels(const TileKernels& all, const double* taps, double* places) { kernels(all, taps, places); }
void finish_kernels(const TileKernels& all, const float* places, float* taps) { finish(all, places, taps); }
void finish_kernels(const TileKernels& all, const double* places, double* taps) { finish(all, places, taps); }

}  // namespace hfta::fusion::cpu
