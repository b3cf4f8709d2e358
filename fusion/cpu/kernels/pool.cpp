#include "fusion/cpu/kernels/pool.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "fusion/simd/multiversion.hpp"

namespace hfta::fusion::cpu {
namespace {

constexpr std::int64_t kChannels = 64;

// Channels of a pixel that are worked on at once, through a window, in registers.
template <typename T>
struct Wide {
  static constexpr std::int64_t kLanes = static_cast<std::int64_t>(64 / sizeof(T));
  typedef T Values __attribute__((vector_size(64)));                               // NOLINT(modernize-use-using)
  using Integer = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;  // conversions are made by way of it
  typedef Integer Integers __attribute__((vector_size(64)));                       // NOLINT(modernize-use-using)
  typedef std::uint16_t Places __attribute__((vector_size(128 / sizeof(T))));      // NOLINT(modernize-use-using)
  // Vectors lie anywhere. Of a typedef that says so Clang forgets it where the type depends on a template; of a packed
  // struct it does not.
  struct __attribute__((packed, may_alias)) Anywhere {
    Values values;
  };
  static inline __attribute__((always_inline)) void load(Values& to, const T* from) {
    to = reinterpret_cast<const Anywhere*>(from)->values;
  }
  static inline __attribute__((always_inline)) void store(T* to, const Values& from) {
    reinterpret_cast<Anywhere*>(to)->values = from;
  }
  struct __attribute__((packed, may_alias)) PlacesAnywhere {
    Places places;
  };
};

// The same for a single channel.
template <typename T>
struct Narrow {
  static constexpr std::int64_t kLanes = 1;
  using Values = T;
  using Places = std::uint16_t;
  static inline __attribute__((always_inline)) void load(T& to, const T* from) { to = *from; }
  static inline __attribute__((always_inline)) void store(T* to, const T& from) { *to = from; }
};

struct Site {
  std::int64_t rows, columns;          // of the window
  std::int64_t row_step, column_step;  // elements
};

// visit(lanes, window, offset of its first element in the input, offset in the output) for every few channels.
template <typename T, typename Visit>
inline __attribute__((always_inline)) void for_each_window(const PoolShape& s, Visit visit) {
  const std::int64_t c = s.channels, row = s.in[1] * c;
  std::int64_t out = 0;
  for (std::int64_t n = 0; n < s.n; ++n) {
    for (const Window& h : s.windows[0]) {
      for (const Window& w : s.windows[1]) {
        const Site site{h.count, w.count, s.step[0] * row, s.step[1] * c};
        const T share = static_cast<T>(1.0 / (s.divisor != 0 ? s.divisor : static_cast<double>(h.divisor * w.divisor)));
        const std::int64_t in = (n * s.in[0] + h.first) * row + w.first * c;
        std::int64_t i = 0;
        for (; i + Wide<T>::kLanes <= c; i += Wide<T>::kLanes) visit(Wide<T>(), site, in + i, out + i, share);
        for (; i < c; ++i) visit(Narrow<T>(), site, in + i, out + i, share);
        out += c;
      }
    }
  }
}

// Plain loops: of comparisons joined by "or" GCC makes better vectors than of vector types.
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
inline __attribute__((always_inline)) void largest(const PoolShape& s, const T* x, T* y, std::uint16_t* where) {
  const std::int64_t channels = s.channels, row = s.in[1] * channels;
  for (std::int64_t n = 0; n < s.n; ++n) {
    for (const Window& h : s.windows[0]) {
      for (const Window& w : s.windows[1]) {
        const Site site{h.count, w.count, s.step[0] * row, s.step[1] * channels};
        const T* const pixel = x + (n * s.in[0] + h.first) * row + w.first * channels;
        for (std::int64_t c = 0; c < channels; c += kChannels) {
          // Known widths stay in registers.
          const std::int64_t width = std::min(kChannels, channels - c);
          std::uint16_t* const places = kKept ? where + c : nullptr;
          if (width == kChannels) {
            largest_of<T, kKept>(site, kChannels, pixel + c, y + c, places);
          } else if (width == 32) {
            largest_of<T, kKept>(site, 32, pixel + c, y + c, places);
          } else if (width == 16) {
            largest_of<T, kKept>(site, 16, pixel + c, y + c, places);
          } else {
            largest_of<T, kKept>(site, width, pixel + c, y + c, places);
          }
        }
        y += channels;
        if constexpr (kKept) where += channels;
      }
    }
  }
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
bool prepare(const PoolShape& s, T* dx, bool add) {
  const Cover cover = cover_of(s);
  if (!add && !(cover.disjoint && cover.whole)) std::fill_n(dx, s.n * s.in[0] * s.in[1] * s.channels, T{0});
  return add || !cover.disjoint;
}

template <typename T, bool kAdd>
inline __attribute__((always_inline)) void scatter(const PoolShape& s, const T* dy, const std::uint16_t* where, T* dx) {
  for_each_window<T>(
      s, [=](auto lanes, const Site& site, std::int64_t in, std::int64_t out, T) __attribute__((always_inline)) {
        using L = decltype(lanes);
        using V = typename L::Values;
        V gradient = {};
        L::load(gradient, dy + out);
        V at = V{}, place = V{};
        if constexpr (L::kLanes == 1) {
          at = static_cast<T>(where[out]);
        } else {
          at = __builtin_convertvector(
              __builtin_convertvector(reinterpret_cast<const typename L::PlacesAnywhere*>(where + out)->places,
                                      typename L::Integers),
              V);
        }
        for (std::int64_t h = 0; h < site.rows; ++h) {
          for (std::int64_t w = 0; w < site.columns; ++w) {
            T* const to = dx + in + h * site.row_step + w * site.column_step;
            const V part = place == at ? gradient : V{};
            V before = {};
            if constexpr (kAdd) L::load(before, to);
            L::store(to, kAdd ? before + part : part);
            place += T{1};
          }
        }
      });
}

template <typename T>
inline __attribute__((always_inline)) void means(const PoolShape& s, const T* x, T* y) {
  for_each_window<T>(
      s, [=](auto lanes, const Site& site, std::int64_t in, std::int64_t out, T share) __attribute__((always_inline)) {
        using L = decltype(lanes);
        typename L::Values sum = {};
        for (std::int64_t h = 0; h < site.rows; ++h) {
          for (std::int64_t w = 0; w < site.columns; ++w) {
            typename L::Values here = {};
            L::load(here, x + in + h * site.row_step + w * site.column_step);
            sum += here;
          }
        }
        L::store(y + out, sum * share);
      });
}

template <typename T, bool kAdd>
inline __attribute__((always_inline)) void spread(const PoolShape& s, const T* dy, T* dx) {
  for_each_window<T>(
      s, [=](auto lanes, const Site& site, std::int64_t in, std::int64_t out, T share) __attribute__((always_inline)) {
        using L = decltype(lanes);
        using V = typename L::Values;
        V part = {};
        L::load(part, dy + out);
        part *= share;
        for (std::int64_t h = 0; h < site.rows; ++h) {
          for (std::int64_t w = 0; w < site.columns; ++w) {
            T* const to = dx + in + h * site.row_step + w * site.column_step;
            V before = {};
            if constexpr (kAdd) L::load(before, to);
            L::store(to, kAdd ? before + part : part);
          }
        }
      });
}

}  // namespace

std::int64_t PoolShape::outputs() const {
  return n * channels * static_cast<std::int64_t>(windows[0].size() * windows[1].size());
}

void max_pool(const PoolShape& shape, const float* x, float* y, std::uint16_t* where) {
  simd::multiversion(
      [&] { where == nullptr ? largest<float, false>(shape, x, y, where) : largest<float, true>(shape, x, y, where); });
}
void max_pool(const PoolShape& shape, const double* x, double* y, std::uint16_t* where) {
  simd::multiversion([&] {
    where == nullptr ? largest<double, false>(shape, x, y, where) : largest<double, true>(shape, x, y, where);
  });
}
void max_pool_backward(const PoolShape& shape, const float* dy, const std::uint16_t* where, float* dx, bool add) {
  simd::multiversion([&] {
    prepare(shape, dx, add) ? scatter<float, true>(shape, dy, where, dx) : scatter<float, false>(shape, dy, where, dx);
  });
}
void max_pool_backward(const PoolShape& shape, const double* dy, const std::uint16_t* where, double* dx, bool add) {
  simd::multiversion([&] {
    prepare(shape, dx, add) ? scatter<double, true>(shape, dy, where, dx)
                            : scatter<double, false>(shape, dy, where, dx);
  });
}
void mean_pool(const PoolShape& shape, const float* x, float* y) {
  simd::multiversion([&] { means(shape, x, y); });
}
void mean_pool(const PoolShape& shape, const double* x, double* y) {
  simd::multiversion([&] { means(shape, x, y); });
}
void mean_pool_backward(const PoolShape& shape, const float* dy, float* dx, bool add) {
  simd::multiversion(
      [&] { prepare(shape, dx, add) ? spread<float, true>(shape, dy, dx) : spread<float, false>(shape, dy, dx); });
}
void mean_pool_backward(const PoolShape& shape, const double* dy, double* dx, bool add) {
  simd::multiversion(
      [&] { prepare(shape, dx, add) ? spread<double, true>(shape, dy, dx) : spread<double, false>(shape, dy, dx); });
}

}  // namespace hfta::fusion::cpu
