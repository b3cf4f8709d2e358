#include "fusion/cpu/kernels/softmax.hpp"

#include <algorithm>
#include <cmath>

#include "fusion/simd/multiversion.hpp"
#include "fusion/simd/vector.hpp"

namespace hfta::fusion::cpu {
namespace {

// Infinities that leave no number (a row that sees nothing) give NaN, as torch's do.
template <typename V, typename T>
inline __attribute__((always_inline)) void softmax_row(const T* x, T* y, std::int64_t n) {
  const T scale = T{1} / simd::exponentials<V>(x, n, simd::largest_of<V>(x, n), y);
  simd::for_each_stretch<V>(
      n, [=](auto at) __attribute__((always_inline)) { at.store(y, at(y) * scale); });
}

template <typename R, typename T>
inline __attribute__((always_inline)) void forward(R, const T* x, T* y, std::int64_t rows, std::int64_t n, bool log) {
  using V = simd::Lanes<T, R::kBytes>;
  for (std::int64_t r = 0; r < rows; ++r, x += n, y += n) {
    if (!log) {
      softmax_row<V>(x, y, n);
      continue;
    }
    const T largest = simd::largest_of<V>(x, n);
    const T log_total = std::log(simd::exponentials<V>(x, n, largest, nullptr));
    simd::for_each_stretch<V>(
        n, [=](auto at) __attribute__((always_inline)) { at.store(y, at(x) - largest - log_total); });
  }
}

// The gradient of a row: y (dy - sum of dy y), or of the logarithm dy - exp(y) sum of dy.
template <typename R, typename T>
inline __attribute__((always_inline)) void backward(R, const T* dy, const T* y, T* dx, std::int64_t rows,
                                                    std::int64_t n, bool log, bool add) {
  using V = simd::Lanes<T, R::kBytes>;
  for (std::int64_t r = 0; r < rows; ++r, dy += n, y += n, dx += n) {
    const T total = log ? simd::sum_of<V>(dy, n)
                        : simd::sum_over<V>(
                              n, [=](auto at) __attribute__((always_inline)) { return at(dy) * at(y); });
    simd::for_each_stretch<V>(
        n, [=](auto at) __attribute__((always_inline)) {
          const V d = log ? at(dy) - simd::exp_of(at(y)) * total : at(y) * (at(dy) - total);
          at.store(dx, add ? at(dx) + d : d);
        });
  }
}

template <typename V>
inline __attribute__((always_inline)) V larger_of(const V& a, const V& b) {
  using Part = typename V::Part;
  return V::of(
      a, b, [](const Part& x, const Part& y) __attribute__((always_inline))->Part { return y > x ? y : x; });
}

// Columns side by side, one in each lane; from one element of a column to the next it is `step`. As by rows, infinities
// that leave no number give NaN.
template <typename R, typename T>
inline __attribute__((always_inline)) void forward_columns(R, const T* x, T* y, std::int64_t n, std::int64_t columns,
                                                           std::int64_t step, bool log) {
  using V = simd::Lanes<T, R::kBytes>;
  simd::for_each_stretch<V>(
      columns, [=](auto at) __attribute__((always_inline)) {
        V largest = at(x), total;
        for (std::int64_t k = 1; k < n; ++k) largest = larger_of(largest, at(x + k * step));
        for (std::int64_t k = 0; k < n; ++k) {
          const V e = simd::exp_of(at(x + k * step) - largest);
          if (!log) at.store(y + k * step, e);
          total += e;
        }
        T lanes[simd::kLanes];
        total.store(lanes);
        for (T& lane : lanes) lane = log ? std::log(lane) : T{1} / lane;
        const V of_total = V::load(lanes);
        for (std::int64_t k = 0; k < n; ++k) {
          at.store(y + k * step, log ? at(x + k * step) - largest - of_total : at(y + k * step) * of_total);
        }
      });
}

template <typename R, typename T>
inline __attribute__((always_inline)) void backward_columns(R, const T* dy, const T* y, T* dx, std::int64_t n,
                                                            std::int64_t columns, std::int64_t step, bool log,
                                                            bool add) {
  using V = simd::Lanes<T, R::kBytes>;
  simd::for_each_stretch<V>(
      columns, [=](auto at) __attribute__((always_inline)) {
        V total;
        for (std::int64_t i = 0; i < n * step; i += step) total += log ? at(dy + i) : at(dy + i) * at(y + i);
        for (std::int64_t i = 0; i < n * step; i += step) {
          const V d = log ? at(dy + i) - simd::exp_of(at(y + i)) * total : at(y + i) * (at(dy + i) - total);
          at.store(dx + i, add ? at(dx + i) + d : d);
        }
      });
}

// Elements that are not seen become -infinity, so that every row is as long as the others: whole vectors.
template <typename V, typename T>
inline __attribute__((always_inline)) void mask_row(T* row, std::int64_t r, std::int64_t n, const ScoreMask<T>& mask) {
  simd::for_each_stretch<V>(
      n, [&](auto at) __attribute__((always_inline)) {
        const V scaled = at(row) * mask.scale;
        at.store(row, mask.causal ? scaled.first(r + 1 - at.i, T{-INFINITY}) : scaled);
      });
  if (mask.added != nullptr) {
    const T* const added = mask.added + r * mask.row_step;
    for (std::int64_t i = 0; i < n; ++i) row[i] += added[i * mask.step];
  }
  if (mask.seen != nullptr) {
    const std::uint8_t* const seen = mask.seen + r * mask.row_step;
    for (std::int64_t i = 0; i < n; ++i) row[i] = seen[i * mask.step] != 0 ? row[i] : T{-INFINITY};
  }
}

template <typename T>
inline __attribute__((always_inline)) bool sees_nothing(const T* row, std::int64_t n) {
  return std::all_of(row, row + n, [](T score) { return score == T{-INFINITY}; });
}

// A row that sees nothing has no weights, as torch has it since 2.5.
template <typename R, typename T>
inline __attribute__((always_inline)) void weights(R, T* scores, std::int64_t rows, std::int64_t n,
                                                   const ScoreMask<T>& mask) {
  using V = simd::Lanes<T, R::kBytes>;
  for (std::int64_t r = 0; r < rows; ++r) {
    T* const row = scores + r * n;
    mask_row<V>(row, r, n, mask);
    if (sees_nothing(row, n)) {
      std::fill_n(row, n, T{0});
    } else {
      softmax_row<V>(row, row, n);
    }
  }
}

template <typename R, typename T>
inline __attribute__((always_inline)) void weights_backward(R, T* d, const T* w, const T* kept, T scale,
                                                            std::int64_t rows, std::int64_t n) {
  using V = simd::Lanes<T, R::kBytes>;
  for (std::int64_t r = 0; r < rows; ++r, d += n, w += n, kept += kept == nullptr ? 0 : n) {
    const auto given = [=](auto at) __attribute__((always_inline)) {
      return kept == nullptr ? at(d) : at(d) * at(kept);
    };
    const T along = simd::sum_over<V>(
        n, [=](auto at) __attribute__((always_inline)) { return given(at) * at(w); });
    simd::for_each_stretch<V>(
        n, [=](auto at) __attribute__((always_inline)) { at.store(d, at(w) * (given(at) - along) * scale); });
  }
}

constexpr std::int64_t kCost = 4;  // cost of an exponential, in plain elements

constexpr std::int64_t kBand = 64;  // columns that a thread takes together: whole stretches

// Calls work(first element, columns) for bands of columns.
template <typename Work>
void share_columns(Team* team, const SoftmaxShape& shape, std::int64_t cost, const Work& work) {
  const std::int64_t bands = (shape.columns + kBand - 1) / kBand;
  share(team, stretches_of(shape.blocks * bands, cost * shape.n * std::min(kBand, shape.columns)),
        [&](std::int64_t first, std::int64_t count, int) {
          for (std::int64_t i = first; i < first + count; ++i) {
            const std::int64_t column = i % bands * kBand;
            work(i / bands * shape.n * shape.columns + column, std::min(kBand, shape.columns - column));
          }
        });
}

template <typename T>
void softmax_of(Team* team, const T* x, T* y, const SoftmaxShape& shape, bool log) {
  const std::int64_t n = shape.n, step = shape.columns;
  if (step > 1) {
    return share_columns(team, shape, kCost, [&](std::int64_t at, std::int64_t columns) {
      simd::multiversion([&](auto r) { forward_columns(r, x + at, y + at, n, columns, step, log); });
    });
  }
  share(team, stretches_of(shape.blocks, kCost * n), [&](std::int64_t first, std::int64_t count, int) {
    simd::multiversion([&](auto r) { forward(r, x + first * n, y + first * n, count, n, log); });
  });
}

template <typename T>
void softmax_backward_of(Team* team, const T* dy, const T* y, T* dx, const SoftmaxShape& shape, bool log, bool add) {
  const std::int64_t n = shape.n, step = shape.columns;
  if (step > 1) {
    return share_columns(team, shape, 1, [&](std::int64_t at, std::int64_t columns) {
      simd::multiversion([&](auto r) { backward_columns(r, dy + at, y + at, dx + at, n, columns, step, log, add); });
    });
  }
  share(team, stretches_of(shape.blocks, n), [&](std::int64_t first, std::int64_t count, int) {
    const std::int64_t at = first * n;
    simd::multiversion([&](auto r) { backward(r, dy + at, y + at, dx + at, count, n, log, add); });
  });
}

}  // namespace

void softmax(Team* team, const float* x, float* y, const SoftmaxShape& shape, bool log) {
  softmax_of(team, x, y, shape, log);
}
void softmax(Team* team, const double* x, double* y, const SoftmaxShape& shape, bool log) {
  softmax_of(team, x, y, shape, log);
}
void softmax_backward(Team* team, const float* dy, const float* y, float* dx, const SoftmaxShape& shape, bool log,
                      bool add) {
  softmax_backward_of(team, dy, y, dx, shape, log, add);
}
void softmax_backward(Team* team, const double* dy, const double* y, double* dx, const SoftmaxShape& shape, bool log,
                      bool add) {
  softmax_backward_of(team, dy, y, dx, shape, log, add);
}
void attention_weights(float* scores, std::int64_t rows, std::int64_t n, const ScoreMask<float>& mask) {
  simd::multiversion([&](auto r) { weights(r, scores, rows, n, mask); });
}
void attention_weights(double* scores, std::int64_t rows, std::int64_t n, const ScoreMask<double>& mask) {
  simd::multiversion([&](auto r) { weights(r, scores, rows, n, mask); });
}
void attention_weights_backward(float* d, const float* w, const float* kept, float scale, std::int64_t rows,
                                std::int64_t n) {
  simd::multiversion([&](auto r) { weights_backward(r, d, w, kept, scale, rows, n); });
}
void attention_weights_backward(double* d, const double* w, const double* kept, double scale, std::int64_t rows,
                                std::int64_t n) {
  simd::multiversion([&](auto r) { weights_backward(r, d, w, kept, scale, rows, n); });
}

}  // namespace hfta::fusion::cpu
