#pragma once
/// Sums and largest elements of rows, in lanes: the order of summation is the same whatever the vector width. For
/// kernels; everything is inlined into their HFTA_WIDE functions.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "fusion/cpu/kernels/exp.hpp"

namespace hfta::fusion::cpu {

inline constexpr std::int64_t kLanes = 16;

template <typename T>
struct Lanes {
  T at[kLanes] = {};

  /// Halves are added until one is left: a chain of 16 additions would take longer than a short row.
  [[nodiscard]] inline __attribute__((always_inline)) T sum() const {
    T eight[8], four[4];
    for (int l = 0; l < 8; ++l) eight[l] = at[l] + at[l + 8];
    for (int l = 0; l < 4; ++l) four[l] = eight[l] + eight[l + 4];
    return (four[0] + four[2]) + (four[1] + four[3]);
  }
};

/// Sum of term(i) for i below n.
template <typename T, typename Term>
inline __attribute__((always_inline)) T sum_over(std::int64_t n, Term term) {
  Lanes<T> sums;
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::int64_t l = 0; l < kLanes; ++l) sums.at[l] += term(i + l);
  }
  if (i < n) {
    for (std::int64_t l = 0; l < kLanes; ++l) sums.at[l] += i + l < n ? term(i + l) : T{0};
  }
  return sums.sum();
}

template <typename T>
inline __attribute__((always_inline)) T sum_of(const T* row, std::int64_t n) {
  return sum_over<T>(
      n, [=](std::int64_t i) __attribute__((always_inline)) { return row[i]; });
}

/// Of n > 0 elements; a NaN need not be found.
template <typename T>
inline __attribute__((always_inline)) T largest_of(const T* row, std::int64_t n) {
  Lanes<T> most;
  for (T& v : most.at) v = row[0];
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::int64_t l = 0; l < kLanes; ++l) most.at[l] = row[i + l] > most.at[l] ? row[i + l] : most.at[l];
  }
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int l = 0; l < half; ++l) most.at[l] = most.at[l + half] > most.at[l] ? most.at[l + half] : most.at[l];
  }
  T largest = most.at[0];
  for (; i < n; ++i) largest = row[i] > largest ? row[i] : largest;
  return largest;
}

/// exp(x - largest) into `out` (null: not kept; may be `row`), and their sum.
template <typename T>
inline __attribute__((always_inline)) T exponentials(const T* row, std::int64_t n, T largest, T* out) {
  Lanes<T> sums;
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::int64_t l = 0; l < kLanes; ++l) {
      const T e = vector_exp(row[i + l] - largest);
      if (out != nullptr) out[i + l] = e;
      sums.at[l] += e;
    }
  }
  if (i < n) {
    T rest[kLanes];
    for (std::int64_t l = 0; l < kLanes; ++l) rest[l] = i + l < n ? row[i + l] - largest : T{-INFINITY};
    for (std::int64_t l = 0; l < kLanes; ++l) rest[l] = vector_exp(rest[l]);
    for (std::int64_t l = 0; l < kLanes; ++l) sums.at[l] += rest[l];
    if (out != nullptr) std::copy_n(rest, n - i, out + i);
  }
  return sums.sum();
}

}  // namespace hfta::fusion::cpu
