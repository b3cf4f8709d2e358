#include "fusion/cpu/kernels/softmax.hpp"

#include <cmath>

#include "fusion/simd/multiversion.hpp"
#include "fusion/simd/vector.hpp"

namespace hfta::fusion::cpu {
namespace {

// Infinities that leave no number (a row that sees nothing) give NaN, as torch's do.
template <typename T>
inline __attribute__((always_inline)) void softmax_row(const T* x, T* y, std::int64_t n) {
  const T scale = T{1} / simd::exponentials(x, n, simd::largest_of(x, n), y);
  simd::for_each_stretch<T>(
      n, [=](auto at) __attribute__((always_inline)) { at.store(y, at(y) * scale); });
}

template <typename T>
inline __attribute__((always_inline)) void forward(const T* x, T* y, std::int64_t rows, std::int64_t n, bool log) {
  for (std::int64_t r = 0; r < rows; ++r, x += n, y += n) {
    if (!log) {
      softmax_row(x, y, n);
      continue;
    }
    const T largest = simd::largest_of(x, n);
    const T log_total = std::log(simd::exponentials(x, n, largest, static_cast<T*>(nullptr)));
    simd::for_each_stretch<T>(
        n, [=](auto at) __attribute__((always_inline)) { at.store(y, at(x) - largest - log_total); });
  }
}

// The gradient of a row: y (dy - sum of dy y), or of the logarithm dy - exp(y) sum of dy.
template <typename T>
inline __attribute__((always_inline)) void backward(const T* dy, const T* y, T* dx, std::int64_t rows, std::int64_t n,
                                                    bool log, bool add) {
  for (std::int64_t r = 0; r < rows; ++r, dy += n, y += n, dx += n) {
    const T total = log ? simd::sum_of(dy, n)
                        : simd::sum_over<T>(
                              n, [=](auto at) __attribute__((always_inline)) { return at(dy) * at(y); });
    simd::for_each_stretch<T>(
        n, [=](auto at) __attribute__((always_inline)) {
          const simd::Lanes<T> d = log ? at(dy) - simd::exp_of(at(y)) * total : at(y) * (at(dy) - total);
          at.store(dx, add ? at(dx) + d : d);
        });
  }
}

// Elements that are not seen become -infinity, so that every row is as long as the others: whole vectors.
template <typename T>
inline __attribute__((always_inline)) void mask_row(T* row, std::int64_t r, std::int64_t n, const ScoreMask<T>& mask) {
  using Whole = typename simd::VectorOf<T>::Whole;
  simd::for_each_stretch<T>(
      n, [&](auto at) __attribute__((always_inline)) {
        const simd::Lanes<T> scaled = at(row) * mask.scale, never = simd::Lanes<T>{} - T(INFINITY);
        at.store(row, !mask.causal                                                   ? scaled
                      : at.lane() + static_cast<Whole>(at.i) > static_cast<Whole>(r) ? never
                                                                                     : scaled);
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
inline __attribute__((always_inline)) void weights(T* scores, std::int64_t rows, std::int64_t n,
                                                   const ScoreMask<T>& mask) {
  for (std::int64_t r = 0; r < rows; ++r) {
    mask_row(scores + r * n, r, n, mask);
    softmax_row(scores + r * n, scores + r * n, n);
  }
}

template <typename T>
inline __attribute__((always_inline)) void weights_backward(T* d, const T* w, const T* kept, T scale, std::int64_t rows,
                                                            std::int64_t n) {
  for (std::int64_t r = 0; r < rows; ++r, d += n, w += n, kept += kept == nullptr ? 0 : n) {
    const auto given = [=](auto at) __attribute__((always_inline)) {
      return kept == nullptr ? at(d) : at(d) * at(kept);
    };
    const T along = simd::sum_over<T>(
        n, [=](auto at) __attribute__((always_inline)) { return given(at) * at(w); });
    simd::for_each_stretch<T>(
        n, [=](auto at) __attribute__((always_inline)) { at.store(d, at(w) * (given(at) - along) * scale); });
  }
}

}  // namespace

void softmax_rows(const float* x, float* y, std::int64_t rows, std::int64_t n, bool log) {
  simd::multiversion([&] { forward(x, y, rows, n, log); });
}
void softmax_rows(const double* x, double* y, std::int64_t rows, std::int64_t n, bool log) {
  simd::multiversion([&] { forward(x, y, rows, n, log); });
}
void softmax_rows_backward(const float* dy, const float* y, float* dx, std::int64_t rows, std::int64_t n, bool log,
                           bool add) {
  simd::multiversion([&] { backward(dy, y, dx, rows, n, log, add); });
}
void softmax_rows_backward(const double* dy, const double* y, double* dx, std::int64_t rows, std::int64_t n, bool log,
                           bool add) {
  simd::multiversion([&] { backward(dy, y, dx, rows, n, log, add); });
}
void attention_weights(float* scores, std::int64_t rows, std::int64_t n, const ScoreMask<float>& mask) {
  simd::multiversion([&] { weights(scores, rows, n, mask); });
}
void attention_weights(double* scores, std::int64_t rows, std::int64_t n, const ScoreMask<double>& mask) {
  simd::multiversion([&] { weights(scores, rows, n, mask); });
}
void attention_weights_backward(float* d, const float* w, const float* kept, float scale, std::int64_t rows,
                                std::int64_t n) {
  simd::multiversion([&] { weights_backward(d, w, kept, scale, rows, n); });
}
void attention_weights_backward(double* d, const double* w, const double* kept, double scale, std::int64_t rows,
                                std::int64_t n) {
  simd::multiversion([&] { weights_backward(d, w, kept, scale, rows, n); });
}

}  // namespace hfta::fusion::cpu
