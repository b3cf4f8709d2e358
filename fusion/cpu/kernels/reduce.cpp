#include "fusion/cpu/kernels/reduce.hpp"

#include <algorithm>
#include <cmath>

#include "fusion/simd/multiversion.hpp"
#include "fusion/simd/vector.hpp"

namespace hfta::fusion::cpu {
namespace {

constexpr std::int64_t kBlock = 64;      // rows summed up by themselves, so that long sums keep their digits
constexpr std::int64_t kStretch = 4096;  // elements of a row likewise
constexpr std::int64_t kColumns = 64;

// Terms of a sum, as functions of an element.
struct Itself {
  template <typename V>
  inline __attribute__((always_inline)) V operator()(const V& x) const {
    return x;
  }
};
struct Squared {
  template <typename V>
  inline __attribute__((always_inline)) V operator()(const V& x) const {
    return x * x;
  }
};

template <typename V, typename Of, typename T>
inline __attribute__((always_inline)) T sum_row(const T* x, std::int64_t n) {
  T total = 0;
  for (std::int64_t i = 0; i < n; i += kStretch) {
    total += simd::sum_over<V>(
        std::min(kStretch, n - i), [row = x + i](auto at) __attribute__((always_inline)) { return Of()(at(row)); });
  }
  return total;
}

// Columns of a matrix [n, inner].
template <typename V, typename Of, typename T>
inline __attribute__((always_inline)) void sum_columns(const T* x, std::int64_t n, std::int64_t inner, T scale, T* y) {
  simd::for_each_stretch<V>(
      inner, [=](auto at) __attribute__((always_inline)) {
        V total;
        for (std::int64_t r0 = 0; r0 < n; r0 += kBlock) {
          V part;
          const std::int64_t end = std::min(r0 + kBlock, n);
          for (std::int64_t r = r0; r < end; ++r) part += Of()(at(x + r * inner));
          total += part;
        }
        at.store(y, total * scale);
      });
}

template <typename Of, typename R, typename T>
inline __attribute__((always_inline)) void sum(R, const Fold& f, const T* x, double scale, T* y) {
  using V = simd::Lanes<T, R::kBytes>;
  for (std::int64_t o = 0; o < f.outer; ++o, x += f.n * f.inner, y += f.inner) {
    if (f.inner == 1) {
      *y = sum_row<V, Of>(x, f.n) * static_cast<T>(scale);
    } else {
      sum_columns<V, Of>(x, f.n, f.inner, static_cast<T>(scale), y);
    }
  }
}

template <typename R, typename T>
inline __attribute__((always_inline)) void norm(R r, const Fold& f, const T* x, T* y) {
  sum<Squared>(r, f, x, 1, y);
  for (std::int64_t i = 0; i < f.outer * f.inner; ++i) y[i] = f.n == 1 ? std::abs(x[i]) : std::sqrt(y[i]);
}

// The row of dy / y is made for kColumns at a time.
template <typename T>
inline __attribute__((always_inline)) void norm_backward(const Fold& f, const T* dy, const T* x, const T* y, T* dx,
                                                         bool add) {
  T by[kColumns];
  for (std::int64_t o = 0; o < f.outer; ++o, x += f.n * f.inner, dx += f.n * f.inner) {
    for (std::int64_t c = 0; c < f.inner; c += kColumns) {
      const std::int64_t width = std::min(kColumns, f.inner - c);
      for (std::int64_t i = 0; i < width; ++i) by[i] = y[i] == 0 ? dy[i] * T{0} : dy[i] / y[i];
      y += width;
      dy += width;
      if (f.inner == 1) {
        for (std::int64_t r = 0; r < f.n; ++r) dx[r] = (add ? dx[r] : T{0}) + x[r] * by[0];
        continue;
      }
      for (std::int64_t r = 0; r < f.n; ++r) {
        const T* __restrict from = x + r * f.inner + c;
        T* __restrict to = dx + r * f.inner + c;
        for (std::int64_t i = 0; i < width; ++i) to[i] = (add ? to[i] : T{0}) + from[i] * by[i];
      }
    }
  }
}

template <typename R, typename T>
inline __attribute__((always_inline)) void spread(R, const Fold& f, const T* y, double scale, T* x, bool add) {
  using V = simd::Lanes<T, R::kBytes>;
  const T s = static_cast<T>(scale);
  for (std::int64_t o = 0; o < f.outer; ++o, y += f.inner) {
    if (f.inner == 1) {
      const T v = *y * s;
      for (std::int64_t i = 0; i < f.n; ++i) x[i] = add ? x[i] + v : v;
      x += f.n;
      continue;
    }
    for (std::int64_t r = 0; r < f.n; ++r, x += f.inner) {
      simd::for_each_stretch<V>(
          f.inner, [=](auto at) __attribute__((always_inline)) { at.store(x, add ? at(x) + at(y) * s : at(y) * s); });
    }
  }
}

// The largest of each of `width` columns, at most kColumns, of n rows that lie `step` apart; `at` may be null. Plain
// loops: of comparisons joined by "or" GCC makes better vectors than of vector types.
template <typename T>
inline __attribute__((always_inline)) void max_columns(const T* x, std::int64_t n, std::int64_t step,
                                                       std::int64_t width, T* y, std::int64_t* at) {
  using Whole = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  T most[kColumns];
  Whole place[kColumns] = {};
  std::copy_n(x, width, most);
  for (std::int64_t r = 1; r < n; ++r) {
    const T* __restrict row = x + r * step;
#pragma GCC unroll 1  // or 16 columns become 16 scalars
    for (std::int64_t c = 0; c < width; ++c) {
      const bool larger = (row[c] > most[c]) | ((row[c] != row[c]) & (most[c] == most[c]));
      most[c] = larger ? row[c] : most[c];
      place[c] = larger ? static_cast<Whole>(r) : place[c];
    }
  }
  std::copy_n(most, width, y);
  if (at != nullptr) std::copy_n(place, width, at);
}

template <typename T>
inline __attribute__((always_inline)) void max(const Fold& f, const T* x, T* y, std::int64_t* at) {
  for (std::int64_t o = 0; o < f.outer; ++o, x += f.n * f.inner) {
    for (std::int64_t c = 0; c < f.inner; c += kColumns) {
      const std::int64_t width = std::min(kColumns, f.inner - c);
      if (width == kColumns) {  // a known width stays in registers
        max_columns(x + c, f.n, f.inner, kColumns, y, at);
      } else {
        max_columns(x + c, f.n, f.inner, width, y, at);
      }
      y += width;
      if (at != nullptr) at += width;
    }
  }
}

template <typename T>
inline __attribute__((always_inline)) void max_backward(const Fold& f, const T* dy, const T* x, const T* y,
                                                        const std::int64_t* at, T* dx, bool add) {
  if (!add) std::fill_n(dx, f.outer * f.n * f.inner, T{0});
  for (std::int64_t o = 0; o < f.outer; ++o, x += f.n * f.inner, dx += f.n * f.inner) {
    for (std::int64_t i = 0; i < f.inner; ++i) {
      const std::int64_t place = o * f.inner + i;
      if (at != nullptr) {
        dx[at[place] * f.inner + i] += dy[place];
        continue;
      }
      std::int64_t equal = 0;
      for (std::int64_t r = 0; r < f.n; ++r) equal += x[r * f.inner + i] == y[place];
      const T share = dy[place] / static_cast<T>(equal);
      for (std::int64_t r = 0; r < f.n; ++r) dx[r * f.inner + i] += x[r * f.inner + i] == y[place] ? share : T{0};
    }
  }
}

// work(a part of the fold, where its part of the larger and of the smaller tensor begins).
template <typename Work>
void share_fold(Team* team, const Fold& fold, const Work& work) {
  const std::int64_t each = fold.n * fold.inner;
  share(team, stretches_of(fold.outer, each), [&](std::int64_t first, std::int64_t count, int) {
    work(Fold{count, fold.n, fold.inner}, first * each, first * fold.inner);
  });
}

}  // namespace

template <typename T>
void sum_fold(Team* team, const Fold& fold, const T* x, double scale, T* y) {
  share_fold(team, fold, [&](const Fold& f, std::int64_t i, std::int64_t o) {
    simd::multiversion([&](auto r) { sum<Itself>(r, f, x + i, scale, y + o); });
  });
}

template <typename T>
void spread_fold(Team* team, const Fold& fold, const T* y, double scale, T* x, bool add) {
  share_fold(team, fold, [&](const Fold& f, std::int64_t i, std::int64_t o) {
    simd::multiversion([&](auto r) { spread(r, f, y + o, scale, x + i, add); });
  });
}

template <typename T>
void norm_fold(Team* team, const Fold& fold, const T* x, T* y) {
  share_fold(team, fold, [&](const Fold& f, std::int64_t i, std::int64_t o) {
    simd::multiversion([&](auto r) { norm(r, f, x + i, y + o); });
  });
}

template <typename T>
void norm_fold_backward(Team* team, const Fold& fold, const T* dy, const T* x, const T* y, T* dx, bool add) {
  share_fold(team, fold, [&](const Fold& f, std::int64_t i, std::int64_t o) {
    simd::multiversion([&] { norm_backward(f, dy + o, x + i, y + o, dx + i, add); });
  });
}

template <typename T>
void max_fold(Team* team, const Fold& fold, const T* x, T* y, std::int64_t* at) {
  share_fold(team, fold, [&](const Fold& f, std::int64_t i, std::int64_t o) {
    simd::multiversion([&] { max(f, x + i, y + o, at == nullptr ? at : at + o); });
  });
}

template <typename T>
void max_fold_backward(Team* team, const Fold& fold, const T* dy, const T* x, const T* y, const std::int64_t* at, T* dx,
                       bool add) {
  share_fold(team, fold, [&](const Fold& f, std::int64_t i, std::int64_t o) {
    simd::multiversion([&] { max_backward(f, dy + o, x + i, y + o, at == nullptr ? at : at + o, dx + i, add); });
  });
}

template void sum_fold(Team*, const Fold&, const float*, double, float*);
template void spread_fold(Team*, const Fold&, const float*, double, float*, bool);
template void norm_fold(Team*, const Fold&, const float*, float*);
template void norm_fold_backward(Team*, const Fold&, const float*, const float*, const float*, float*, bool);
template void max_fold(Team*, const Fold&, const float*, float*, std::int64_t*);
template void max_fold_backward(Team*, const Fold&, const float*, const float*, const float*, const std::int64_t*,
                                float*, bool);
template void sum_fold(Team*, const Fold&, const double*, double, double*);
template void spread_fold(Team*, const Fold&, const double*, double, double*, bool);
template void norm_fold(Team*, const Fold&, const double*, double*);
template void norm_fold_backward(Team*, const Fold&, const double*, const double*, const double*, double*, bool);
template void max_fold(Team*, const Fold&, const double*, double*, std::int64_t*);
template void max_fold_backward(Team*, const Fold&, const double*, const double*, const double*, const std::int64_t*,
                                double*, bool);

}  // namespace hfta::fusion::cpu
