#include "fusion/cpu/kernels/pool.hpp"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "fusion/simd/multiversion.hpp"

namespace hfta::fusion::cpu {
namespace {

constexpr std::int64_t kChannels = 64;

// Images [first, first + count).
struct Images {
  std::int64_t first = 0, count = 0;
};

struct Site {
  std::int64_t rows, columns;          // sizes of the window
  std::int64_t row_step, column_step;  // elements
};

// visit(width, window, offset of its first element in the input, offset in the output, share of a mean) for every few
// channels.
template <typename T, typename Visit>
inline __attribute__((always_inline)) void for_each_window(const PoolShape& s, const Images& images, Visit visit) {
  const std::int64_t channels = s.channels, row = s.in[1] * channels;
  std::int64_t out = images.first * (s.outputs() / s.n);
  for (std::int64_t n = images.first; n < images.first + images.count; ++n) {
    for (const Window& h : s.windows[0]) {
      for (const Window& w : s.windows[1]) {
        const Site site{h.count, w.count, s.step[0] * row, s.step[1] * channels};
        const T share = static_cast<T>(1.0 / (s.divisor != 0 ? s.divisor : static_cast<double>(h.divisor * w.divisor)));
        const std::int64_t in = (n * s.in[0] + h.first) * row + w.first * channels;
        for (std::int64_t c = 0; c < channels; c += kChannels) {
          // Known widths stay in registers.
          const std::int64_t width = std::min(kChannels, channels - c);
          if (width == kChannels) {
            visit(std::integral_constant<std::int64_t, kChannels>(), site, in + c, out + c, share);
          } else if (width == 32) {
            visit(std::integral_constant<std::int64_t, 32>(), site, in + c, out + c, share);
          } else if (width == 16) {
            visit(std::integral_constant<std::int64_t, 16>(), site, in + c, out + c, share);
          } else {
            visit(width, site, in + c, out + c, share);
          }
        }
        out += channels;
      }
    }
  }
}

// Plain loops: of these GCC makes better vectors than of vector types, above all where a register holds half of one.
template <typename T, bool kKept>
inline __attribute__((always_inline)) void largest_of(const Site& site, std::int64_t width, const T* __restrict x,
                                                      T* __restrict y, std::uint16_t* __restrict where) {
  T best[kChannels], at[kChannels];
  for (std::int64_t c = 0; c < width; ++c) best[c] = -std::numeric_limits<T>::infinity();
  for (std::int64_t c = 0; c < width; ++c) at[c] = T{0};
  T place = 0;
  for (std::int64_t h = 0; h < site.rows; ++h) {
    for (std::int64_t w = 0; w < site.columns; ++w, place += T{1}) {
      const T* __restrict v = x + h * site.row_step + w * site.column_step;
#pragma GCC unroll 1  // or 16 channels become 16 scalars
      for (std::int64_t c = 0; c < width; ++c) {
        const bool taken = (v[c] > best[c]) | (v[c] != v[c]);
        best[c] = taken ? v[c] : best[c];
        if constexpr (kKept) at[c] = taken ? place : at[c];
      }
    }
  }
  std::copy_n(best, width, y);
  if constexpr (kKept) {
    for (std::int64_t c = 0; c < width; ++c) where[c] = static_cast<std::uint16_t>(static_cast<std::int32_t>(at[c]));
  }
}

template <typename T, bool kKept>
inline __attribute__((always_inline)) void largest(const PoolShape& s, const Images& images, const T* x, T* y,
                                                   std::uint16_t* where) {
  for_each_window<T>(
      s,
      images, [=](auto width, const Site& site, std::int64_t in, std::int64_t out, T) __attribute__((always_inline)) {
        largest_of<T, kKept>(site, width, x + in, y + out, kKept ? where + out : nullptr);
      });
}

// Whether no input belongs to two windows, and whether each belongs to one.
struct Cover {
  bool disjoint = true, whole = true;
};
Cover cover_of(const PoolShape& s) {
  Cover cover;
  for (std::size_t d = 0; d < 2; ++d) {
    std::int64_t end = 0;
    for (const Window& w : s.windows[d]) {
      cover.disjoint = cover.disjoint && w.first >= end;
      cover.whole = cover.whole && w.first == end && (s.step[d] == 1 || w.count == 1);
      end = w.count == 0 ? end : w.first + (w.count - 1) * s.step[d] + 1;
    }
    cover.whole = cover.whole && end == s.in[d];
  }
  return cover;
}

// Zeros where nothing will be written to; returns whether parts have to be added.
template <typename T>
bool prepare(const PoolShape& s, const Images& images, T* dx, bool add) {
  const Cover cover = cover_of(s);
  const std::int64_t image = s.in[0] * s.in[1] * s.channels;
  if (!add && !(cover.disjoint && cover.whole)) std::fill_n(dx + images.first * image, images.count * image, T{0});
  return add || !cover.disjoint;
}

// write(to, place) for every element of a window, place by place.
template <typename T, typename Write>
inline __attribute__((always_inline)) void for_each_place(const Site& site, T* dx, Write write) {
  std::int32_t place = 0;
  for (std::int64_t h = 0; h < site.rows; ++h) {
    for (std::int64_t w = 0; w < site.columns; ++w) write(dx + h * site.row_step + w * site.column_step, place++);
  }
}

template <typename T, bool kAdd>
inline __attribute__((always_inline)) void scatter_to(const Site& site, std::int64_t width, const T* __restrict dy,
                                                      const std::uint16_t* __restrict where, T* dx) {
  T at[kChannels];
#pragma GCC unroll 1
  for (std::int64_t c = 0; c < width; ++c) at[c] = static_cast<T>(static_cast<std::int32_t>(where[c]));
  for_each_place(
      site, dx, [&](T* __restrict to, std::int32_t place) __attribute__((always_inline)) {
        const T here = static_cast<T>(place);
#pragma GCC unroll 1
        for (std::int64_t c = 0; c < width; ++c) {
          const T part = at[c] == here ? dy[c] : T{0};
          to[c] = kAdd ? to[c] + part : part;
        }
      });
}

template <typename T, bool kAdd>
inline __attribute__((always_inline)) void scatter(const PoolShape& s, const Images& images, const T* dy,
                                                   const std::uint16_t* where, T* dx) {
  for_each_window<T>(
      s,
      images, [=](auto width, const Site& site, std::int64_t in, std::int64_t out, T) __attribute__((always_inline)) {
        scatter_to<T, kAdd>(site, width, dy + out, where + out, dx + in);
      });
}

template <typename T>
inline __attribute__((always_inline)) void mean_of(const Site& site, std::int64_t width, const T* x, T share,
                                                   T* __restrict y) {
  T sum[kChannels];
  for (std::int64_t c = 0; c < width; ++c) sum[c] = T{0};
  for_each_place(
      site, x, [&](const T* __restrict from, std::int32_t) __attribute__((always_inline)) {
#pragma GCC unroll 1
        for (std::int64_t c = 0; c < width; ++c) sum[c] += from[c];
      });
  for (std::int64_t c = 0; c < width; ++c) y[c] = sum[c] * share;
}

template <typename T>
inline __attribute__((always_inline)) void means(const PoolShape& s, const Images& images, const T* x, T* y) {
  for_each_window<T>(
      s, images,
      [=](auto width, const Site& site, std::int64_t in, std::int64_t out, T share)
          __attribute__((always_inline)) { mean_of(site, width, x + in, share, y + out); });
}

template <typename T, bool kAdd>
inline __attribute__((always_inline)) void spread_to(const Site& site, std::int64_t width, const T* __restrict dy,
                                                     T share, T* dx) {
  for_each_place(
      site, dx, [&](T* __restrict to, std::int32_t) __attribute__((always_inline)) {
#pragma GCC unroll 1
        for (std::int64_t c = 0; c < width; ++c) to[c] = kAdd ? to[c] + dy[c] * share : dy[c] * share;
      });
}

template <typename T, bool kAdd>
inline __attribute__((always_inline)) void spread(const PoolShape& s, const Images& images, const T* dy, T* dx) {
  for_each_window<T>(
      s, images,
      [=](auto width, const Site& site, std::int64_t in, std::int64_t out, T share)
          __attribute__((always_inline)) { spread_to<T, kAdd>(site, width, dy + out, share, dx + in); });
}

template <typename Work>
void share_images(Team* team, const PoolShape& s, const Work& work) {
  share(team, stretches_of(s.n, s.in[0] * s.in[1] * s.channels), [&](std::int64_t first, std::int64_t count, int) {
    simd::multiversion([&] { work(Images{first, count}); });
  });
}

}  // namespace

std::int64_t PoolShape::outputs() const {
  return n * channels * static_cast<std::int64_t>(windows[0].size() * windows[1].size());
}

void max_pool(Team* team, const PoolShape& shape, const float* x, float* y, std::uint16_t* where) {
  share_images(
      team, shape, [&](const Images& images) __attribute__((always_inline)) {
        where == nullptr ? largest<float, false>(shape, images, x, y, where)
                         : largest<float, true>(shape, images, x, y, where);
      });
}
void max_pool_backward(Team* team, const PoolShape& shape, const float* dy, const std::uint16_t* where, float* dx,
                       bool add) {
  share_images(
      team, shape, [&](const Images& images) __attribute__((always_inline)) {
        prepare(shape, images, dx, add) ? scatter<float, true>(shape, images, dy, where, dx)
                                        : scatter<float, false>(shape, images, dy, where, dx);
      });
}
void mean_pool(Team* team, const PoolShape& shape, const float* x, float* y) {
  share_images(
      team, shape, [&](const Images& images) __attribute__((always_inline)) { means(shape, images, x, y); });
}
void mean_pool_backward(Team* team, const PoolShape& shape, const float* dy, float* dx, bool add) {
  share_images(
      team, shape, [&](const Images& images) __attribute__((always_inline)) {
        prepare(shape, images, dx, add) ? spread<float, true>(shape, images, dy, dx)
                                        : spread<float, false>(shape, images, dy, dx);
      });
}
void max_pool(Team* team, const PoolShape& shape, const double* x, double* y, std::uint16_t* where) {
  share_images(
      team, shape, [&](const Images& images) __attribute__((always_inline)) {
        where == nullptr ? largest<double, false>(shape, images, x, y, where)
                         : largest<double, true>(shape, images, x, y, where);
      });
}
void max_pool_backward(Team* team, const PoolShape& shape, const double* dy, const std::uint16_t* where, double* dx,
                       bool add) {
  share_images(
      team, shape, [&](const Images& images) __attribute__((always_inline)) {
        prepare(shape, images, dx, add) ? scatter<double, true>(shape, images, dy, where, dx)
                                        : scatter<double, false>(shape, images, dy, where, dx);
      });
}
void mean_pool(Team* team, const PoolShape& shape, const double* x, double* y) {
  share_images(
      team, shape, [&](const Images& images) __attribute__((always_inline)) { means(shape, images, x, y); });
}
void mean_pool_backward(Team* team, const PoolShape& shape, const double* dy, double* dx, bool add) {
  share_images(
      team, shape, [&](const Images& images) __attribute__((always_inline)) {
        prepare(shape, images, dx, add) ? spread<double, true>(shape, images, dy, dx)
                                        : spread<double, false>(shape, images, dy, dx);
      });
}

}  // namespace hfta::fusion::cpu
