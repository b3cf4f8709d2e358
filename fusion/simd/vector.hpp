#pragma once
/// Rows in stretches of 16 elements, each one value of a vector type: what compilers make of loops over short rows is
/// slower, and the order in which sums are made must not depend on the machine. For kernels; everything is inlined into
/// what they pass to multiversion(), and compiled with -Wno-psabi.

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "fusion/simd/exp.hpp"

namespace hfta::fusion::simd {

inline constexpr std::int64_t kLanes = 16;

template <typename T>
struct VectorOf {
  using Whole = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  // NOLINTBEGIN(modernize-use-using): attributes
  typedef T Type __attribute__((vector_size(kLanes * sizeof(T)), aligned(sizeof(T)), may_alias));
  typedef Whole Wholes __attribute__((vector_size(kLanes * sizeof(T))));
  // NOLINTEND(modernize-use-using)
};
template <typename T>
using Lanes = typename VectorOf<T>::Type;

/// Elements i to i + 15 of rows; of the last stretch only `count`, the other lanes are 0.
template <typename T, bool kWhole>
struct Stretch {
  std::int64_t i = 0, count = kLanes;

  [[nodiscard]] inline __attribute__((always_inline)) Lanes<T> operator()(const T* row) const {
    if constexpr (kWhole) return *reinterpret_cast<const Lanes<T>*>(row + i);
    T part[kLanes] = {};
    for (std::int64_t l = 0; l < count; ++l) part[l] = row[i + l];
    return *reinterpret_cast<const Lanes<T>*>(part);
  }
  inline __attribute__((always_inline)) void store(T* row, const Lanes<T>& v) const {
    if constexpr (kWhole) {
      *reinterpret_cast<Lanes<T>*>(row + i) = v;
    } else {
      for (std::int64_t l = 0; l < count; ++l) row[i + l] = v[l];
    }
  }
  /// v, with `other` in the lanes that are not there.
  [[nodiscard]] inline __attribute__((always_inline)) Lanes<T> kept(const Lanes<T>& v, T other) const {
    if constexpr (kWhole) return v;
    return lane() < static_cast<typename VectorOf<T>::Whole>(count) ? v : Lanes<T>{} + other;
  }
  [[nodiscard]] static inline __attribute__((always_inline)) typename VectorOf<T>::Wholes lane() {
    return typename VectorOf<T>::Wholes{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  }
};

/// Calls visit(stretch) for n elements.
template <typename T, typename Visit>
inline __attribute__((always_inline)) void for_each_stretch(std::int64_t n, Visit visit) {
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) visit(Stretch<T, true>{i});
  if (i < n) visit(Stretch<T, false>{i, n - i});
}

/// Halves are brought together by combine(a, b) until one lane is left.
template <typename T, typename Combine>
inline __attribute__((always_inline)) T reduced(Lanes<T> v, Combine combine) {
  v = combine(v, __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
  v = combine(v, __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11));
  v = combine(v, __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13));
  v = combine(v, __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14));
  return v[0];
}

template <typename T>
inline __attribute__((always_inline)) T total_of(const Lanes<T>& v) {
  return reduced<T>(
      v, [](const Lanes<T>& a, const Lanes<T>& b) __attribute__((always_inline)) { return a + b; });
}

/// Sum of term(stretch), a vector, over n elements.
template <typename T, typename Term>
inline __attribute__((always_inline)) T sum_over(std::int64_t n, Term term) {
  Lanes<T> sums = {};
  for_each_stretch<T>(
      n, [&](auto at) __attribute__((always_inline)) { sums += at.kept(term(at), T{0}); });
  return total_of<T>(sums);
}

template <typename T>
inline __attribute__((always_inline)) T sum_of(const T* row, std::int64_t n) {
  return sum_over<T>(
      n, [row](auto at) __attribute__((always_inline)) { return at(row); });
}

/// Of n > 0 elements; a NaN need not be found.
template <typename T>
inline __attribute__((always_inline)) T largest_of(const T* row, std::int64_t n) {
  Lanes<T> most = Lanes<T>{} + row[0];
  for_each_stretch<T>(
      n, [&](auto at) __attribute__((always_inline)) {
        const Lanes<T> v = at.kept(at(row), row[0]);
        most = v > most ? v : most;
      });
  return reduced<T>(
      most, [](const Lanes<T>& a, const Lanes<T>& b) __attribute__((always_inline)) { return b > a ? b : a; });
}

/// vector_exp() of each lane, to the same bits: Cephes' expf, as there.
inline __attribute__((always_inline)) Lanes<float> exp_of(const Lanes<float>& x) {
  using Wholes = VectorOf<float>::Wholes;
  constexpr float kMagic = 12582912.0F;
  const Lanes<float> zero = {};
  const Lanes<float> low = x < -87.3F ? zero - 87.3F : x;
  const Lanes<float> bounded = low > 88.7F ? zero + 88.7F : low;
  const Lanes<float> shifted = bounded * 1.44269504F + kMagic;
  const Lanes<float> n = shifted - kMagic;
  const Lanes<float> r = (bounded - n * 0.693359375F) - n * -2.12194440e-4F;
  Lanes<float> p = zero + 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  const Wholes whole = std::bit_cast<Wholes>(shifted) - std::bit_cast<std::int32_t>(kMagic);
  const Wholes half = whole >> 1;
  const Lanes<float> first = std::bit_cast<Lanes<float>>((half + 127) << 23);
  const Lanes<float> second = std::bit_cast<Lanes<float>>((whole - half + 127) << 23);
  const Lanes<float> y = p * first * second;
  return x < -87.3F ? zero : x > 88.72F ? zero + INFINITY : y;
}
inline __attribute__((always_inline)) Lanes<double> exp_of(const Lanes<double>& x) {
  Lanes<double> y = {};
  for (std::int64_t l = 0; l < kLanes; ++l) y[l] = std::exp(x[l]);
  return y;
}

/// exp(x - largest) into `out` (null: not kept; may be `row`), and their sum.
template <typename T>
inline __attribute__((always_inline)) T exponentials(const T* row, std::int64_t n, T largest, T* out) {
  return sum_over<T>(
      n, [=](auto at) __attribute__((always_inline)) {
        const Lanes<T> e = exp_of(at(row) - largest);
        if (out != nullptr) at.store(out, e);
        return e;
      });
}

}  // namespace hfta::fusion::simd
