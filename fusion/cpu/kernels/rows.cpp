#include "fusion/cpu/kernels/rows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "fusion/simd/multiversion.hpp"
#include "fusion/simd/vector.hpp"

namespace hfta::fusion::cpu {
namespace {

constexpr std::int64_t kBlock = 64;      // rows summed up by themselves, so that long sums keep their digits
constexpr std::int64_t kIgnored = -100;  // PyTorch's ignore_index

template <typename T>
inline __attribute__((always_inline)) void bias_rows(T* y, std::int64_t ld, std::int64_t rows, std::int64_t columns,
                                                     const T* bias, bool relu) {
  for (std::int64_t r = 0; r < rows; ++r) {
    T* __restrict row = y + r * ld;
    if (bias != nullptr && relu) {
      for (std::int64_t c = 0; c < columns; ++c) {
        const T v = row[c] + bias[c];
        row[c] = v < T{0} ? T{0} : v;
      }
    } else if (bias != nullptr) {
      for (std::int64_t c = 0; c < columns; ++c) row[c] += bias[c];
    } else {
      for (std::int64_t c = 0; c < columns; ++c) row[c] = row[c] < T{0} ? T{0} : row[c];
    }
  }
}

template <typename T>
inline __attribute__((always_inline)) void mask_rows(T* dy, const T* y, std::int64_t ld, std::int64_t rows,
                                                     std::int64_t columns) {
  for (std::int64_t r = 0; r < rows; ++r) {
    T* __restrict d = dy + r * ld;
    const T* __restrict v = y + r * ld;
    for (std::int64_t c = 0; c < columns; ++c) d[c] = v[c] == T{0} ? T{0} : d[c];
  }
}

template <typename T>
inline __attribute__((always_inline)) void sum_rows(T* dy, const T* y, std::int64_t ld, std::int64_t rows,
                                                    std::int64_t columns, T* sums, bool add) {
  constexpr std::int64_t kColumns = 64;
  for (std::int64_t c0 = 0; c0 < columns; c0 += kColumns) {
    const std::int64_t width = std::min(kColumns, columns - c0);
    T total[kColumns];
    for (std::int64_t c = 0; c < width; ++c) total[c] = add ? sums[c0 + c] : T{0};
    for (std::int64_t r0 = 0; r0 < rows; r0 += kBlock) {
      T part[kColumns] = {};
      const std::int64_t end = std::min(r0 + kBlock, rows);
      for (std::int64_t r = r0; r < end; ++r) {
        T* __restrict d = dy + r * ld + c0;
        if (y != nullptr) {
          const T* __restrict v = y + r * ld + c0;
          for (std::int64_t c = 0; c < width; ++c) d[c] = v[c] == T{0} ? T{0} : d[c];
        }
        for (std::int64_t c = 0; c < width; ++c) part[c] += d[c];
      }
      for (std::int64_t c = 0; c < width; ++c) total[c] += part[c];
    }
    for (std::int64_t c = 0; c < width; ++c) sums[c0 + c] = total[c];
  }
}

template <typename T>
inline __attribute__((always_inline)) void mask_sum(T* dy, const T* y, std::int64_t ld, std::int64_t rows,
                                                    std::int64_t columns, T* sums, bool add) {
  if (sums != nullptr) {
    sum_rows(dy, y, ld, rows, columns, sums, add);
  } else if (y != nullptr) {
    mask_rows(dy, y, ld, rows, columns);
  }
}

template <typename T>
inline __attribute__((always_inline)) double cross_entropy_rows(const T* logits, const std::int64_t* classes_of,
                                                                std::int64_t rows, std::int64_t classes,
                                                                double smoothing, T* scratch, T* gradient) {
  double loss = 0;
  const std::int64_t counted = rows - std::count(classes_of, classes_of + rows, kIgnored);
  const double share = 1.0 / static_cast<double>(counted);
  const double each = smoothing / static_cast<double>(classes);
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* const row = logits + r * classes;
    const std::int64_t wanted = classes_of[r];
    if (wanted == kIgnored) {
      if (gradient != nullptr) std::fill_n(gradient + r * classes, classes, T{0});
      continue;
    }
    if (wanted < 0 || wanted >= classes) {
      if (gradient != nullptr) std::fill_n(gradient, rows * classes, std::numeric_limits<T>::quiet_NaN());
      return std::numeric_limits<double>::quiet_NaN();
    }
    const T largest = simd::largest_of(row, classes);
    const T total = simd::exponentials(row, classes, largest, scratch);
    const double log_total = std::log(static_cast<double>(total)) + static_cast<double>(largest);
    loss += log_total - (1 - smoothing) * static_cast<double>(row[wanted]);
    if (smoothing != 0) loss -= each * static_cast<double>(simd::sum_of(row, classes));
    if (gradient == nullptr) continue;
    T* __restrict out = gradient + r * classes;
    const T scale = static_cast<T>(share / static_cast<double>(total)), less = static_cast<T>(each * share);
    for (std::int64_t c = 0; c < classes; ++c) out[c] = scratch[c] * scale - less;
    out[wanted] -= static_cast<T>((1 - smoothing) * share);
  }
  return loss * share;
}

}  // namespace

void add_bias(float* y, std::int64_t ld, std::int64_t rows, std::int64_t columns, const float* bias, bool relu) {
  simd::multiversion([&] { bias_rows(y, ld, rows, columns, bias, relu); });
}
void add_bias(double* y, std::int64_t ld, std::int64_t rows, std::int64_t columns, const double* bias, bool relu) {
  simd::multiversion([&] { bias_rows(y, ld, rows, columns, bias, relu); });
}
void mask_and_sum(float* dy, const float* y, std::int64_t ld, std::int64_t rows, std::int64_t columns, float* sums,
                  bool add) {
  simd::multiversion([&] { mask_sum(dy, y, ld, rows, columns, sums, add); });
}
void mask_and_sum(double* dy, const double* y, std::int64_t ld, std::int64_t rows, std::int64_t columns, double* sums,
                  bool add) {
  simd::multiversion([&] { mask_sum(dy, y, ld, rows, columns, sums, add); });
}
double cross_entropy(const float* logits, const std::int64_t* classes_of, std::int64_t rows, std::int64_t classes,
                     double smoothing, float* scratch, float* gradient) {
  return simd::multiversion(
      [&] { return cross_entropy_rows(logits, classes_of, rows, classes, smoothing, scratch, gradient); });
}
double cross_entropy(const double* logits, const std::int64_t* classes_of, std::int64_t rows, std::int64_t classes,
                     double smoothing, double* scratch, double* gradient) {
  return simd::multiversion(
      [&] { return cross_entropy_rows(logits, classes_of, rows, classes, smoothing, scratch, gradient); });
}

}  // namespace hfta::fusion::cpu
