#pragma once
/// Rows in stretches of 16 elements, each one value of a vector type: what compilers make of loops over short rows is
/// slower, and the order in which sums are made must not depend on the machine. For kernels; everything is inlined into
/// what they pass to multiversion(), and compiled with -Wno-psabi.

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "fusion/simd/exp.hpp"

namespace hfta::fusion::simd {

inline constexpr std::int64_t kLanes = 16;

/// visit(0), visit(1), ...: constants, so that arrays of registers stay in registers.
template <std::size_t kCount, typename Visit>
inline __attribute__((always_inline)) void for_each_index(Visit visit) {
  [&]<std::size_t... p>(std::index_sequence<p...>) __attribute__((always_inline)) {
    (visit(std::integral_constant<std::size_t, p>()), ...);
  }
  (std::make_index_sequence<kCount>());
}

/// 16 elements in registers of `kBytes`, those of the level that multiversion() runs: compilers take a vector that is
/// wider than a register to pieces, and make scalars of its comparisons.
template <typename T, std::size_t kBytes>
struct Lanes {
  using Element = T;
  using Whole = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  // NOLINTBEGIN(modernize-use-using): attributes
  typedef T Part __attribute__((vector_size(kBytes)));
  typedef Whole Wholes __attribute__((vector_size(kBytes)));
  // NOLINTEND(modernize-use-using)
  static constexpr std::size_t kWidth = kBytes / sizeof(T);  // elements of a part
  static constexpr std::size_t kParts = kLanes / kWidth;

  Part part[kParts] = {};

  Lanes() = default;
  inline __attribute__((always_inline)) Lanes(T value) {  // NOLINT(google-explicit-constructor): as scalars in formulas
    for_each_index<kParts>([&](auto p) __attribute__((always_inline)) { part[p] = Part{} + value; });
  }

  [[nodiscard]] static inline __attribute__((always_inline)) Lanes load(const T* from) {
    Lanes v;
    for_each_index<kParts>([&](auto p) __attribute__((always_inline)) {
      __builtin_memcpy(&v.part[p], from + p * kWidth, kBytes);
    });
    return v;
  }
  inline __attribute__((always_inline)) void store(T* to) const {
    for_each_index<kParts>([&](auto p)
                               __attribute__((always_inline)) { __builtin_memcpy(to + p * kWidth, &part[p], kBytes); });
  }
  /// f(part of a, part of b), part by part.
  template <typename F>
  [[nodiscard]] static inline __attribute__((always_inline)) Lanes of(const Lanes& a, const Lanes& b, F f) {
    Lanes v;
    for_each_index<kParts>([&](auto p) __attribute__((always_inline)) { v.part[p] = f(a.part[p], b.part[p]); });
    return v;
  }
  /// This one in lanes 0 to count - 1, `other` in those behind.
  [[nodiscard]] inline __attribute__((always_inline)) Lanes first(std::int64_t count, T other) const {
    Lanes v;
    for_each_index<kParts>([&](auto p) __attribute__((always_inline)) {
      const Wholes below = Wholes{} + static_cast<Whole>(count - static_cast<std::int64_t>(p * kWidth));
      v.part[p] = lane(std::make_index_sequence<kWidth>()) < below ? part[p] : Part{} + other;
    });
    return v;
  }

  friend inline __attribute__((always_inline)) Lanes operator+(const Lanes& a, const Lanes& b) {
    return of(
        a, b, [](const Part& x, const Part& y) __attribute__((always_inline)) { return x + y; });
  }
  friend inline __attribute__((always_inline)) Lanes operator-(const Lanes& a, const Lanes& b) {
    return of(
        a, b, [](const Part& x, const Part& y) __attribute__((always_inline)) { return x - y; });
  }
  friend inline __attribute__((always_inline)) Lanes operator*(const Lanes& a, const Lanes& b) {
    return of(
        a, b, [](const Part& x, const Part& y) __attribute__((always_inline)) { return x * y; });
  }
  inline __attribute__((always_inline)) Lanes& operator+=(const Lanes& other) { return *this = *this + other; }
  inline __attribute__((always_inline)) Lanes& operator*=(const Lanes& other) { return *this = *this * other; }

 private:
  template <std::size_t... l>
  [[nodiscard]] static inline __attribute__((always_inline)) Wholes lane(std::index_sequence<l...>) {
    return Wholes{static_cast<Whole>(l)...};
  }
};

/// Fewer than 16 elements, by two moves that overlap: element by element is slower than all that is done with them.
template <std::int64_t kMove = kLanes / 2, typename T>
inline __attribute__((always_inline)) void copy_some(const T* from, std::int64_t count, T* to) {
  if (count >= kMove) {
    T first[kMove], last[kMove];
    __builtin_memcpy(first, from, sizeof first);
    __builtin_memcpy(last, from + count - kMove, sizeof last);
    __builtin_memcpy(to, first, sizeof first);
    __builtin_memcpy(to + count - kMove, last, sizeof last);
  } else if constexpr (kMove > 1) {
    copy_some<kMove / 2>(from, count, to);
  }
}

/// Elements i to i + 15 of rows; of the last stretch only `count`, the other lanes are 0. V: Lanes.
template <typename V, bool kWhole>
struct Stretch {
  using T = typename V::Element;
  std::int64_t i = 0, count = kLanes;

  [[nodiscard]] inline __attribute__((always_inline)) V operator()(const T* row) const {
    if constexpr (kWhole) return V::load(row + i);
    T part[kLanes] = {};
    copy_some(row + i, count, part);
    return V::load(part);
  }
  inline __attribute__((always_inline)) void store(T* row, const V& v) const {
    if constexpr (kWhole) return v.store(row + i);
    T part[kLanes];
    v.store(part);
    copy_some(part, count, row + i);
  }
  /// v, with `other` in the lanes that are not there.
  [[nodiscard]] inline __attribute__((always_inline)) V kept(const V& v, T other) const {
    if constexpr (kWhole) return v;
    return v.first(count, other);
  }
};

/// Calls visit(stretch) for n elements.
template <typename V, typename Visit>
inline __attribute__((always_inline)) void for_each_stretch(std::int64_t n, Visit visit) {
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) visit(Stretch<V, true>{i});
  if (i < n) visit(Stretch<V, false>{i, n - i});
}

namespace detail {

template <std::size_t kBy, typename V, std::size_t... l>
inline __attribute__((always_inline)) typename V::Part swapped(const typename V::Part& v, std::index_sequence<l...>) {
  return __builtin_shufflevector(v, v, (l ^ kBy)...);
}

template <std::size_t kBy, typename V, typename Combine>
inline __attribute__((always_inline)) typename V::Part within(typename V::Part v, Combine combine) {
  if constexpr (kBy == 0) {
    return v;
  } else {
    const typename V::Part other = swapped<kBy, V>(v, std::make_index_sequence<V::kWidth>());
    return within<kBy / 2, V>(combine(v, other), combine);
  }
}

}  // namespace detail

/// Halves are brought together by combine(a, b), of parts, until one lane is left.
template <typename V, typename Combine>
inline __attribute__((always_inline)) typename V::Element reduced(V v, Combine combine) {
  if constexpr (V::kParts >= 8) {
    for_each_index<4>([&](auto p) __attribute__((always_inline)) { v.part[p] = combine(v.part[p], v.part[p + 4]); });
  }
  if constexpr (V::kParts >= 4) {
    for_each_index<2>([&](auto p) __attribute__((always_inline)) { v.part[p] = combine(v.part[p], v.part[p + 2]); });
  }
  if constexpr (V::kParts >= 2) v.part[0] = combine(v.part[0], v.part[1]);
  return detail::within<V::kWidth / 2, V>(v.part[0], combine)[0];
}

template <typename V>
inline __attribute__((always_inline)) typename V::Element total_of(const V& v) {
  using Part = typename V::Part;
  return reduced(
      v, [](const Part& a, const Part& b) __attribute__((always_inline)) { return a + b; });
}

/// Sum of term(stretch), Lanes, over n elements.
template <typename V, typename Term>
inline __attribute__((always_inline)) typename V::Element sum_over(std::int64_t n, Term term) {
  V sums;
  for_each_stretch<V>(
      n, [&](auto at) __attribute__((always_inline)) { sums += at.kept(term(at), 0); });
  return total_of(sums);
}

template <typename V>
inline __attribute__((always_inline)) typename V::Element sum_of(const typename V::Element* row, std::int64_t n) {
  return sum_over<V>(
      n, [row](auto at) __attribute__((always_inline)) { return at(row); });
}

/// The largest of n > 0 elements; a NaN need not be found.
template <typename V>
inline __attribute__((always_inline)) typename V::Element largest_of(const typename V::Element* row, std::int64_t n) {
  using Part = typename V::Part;
  const auto larger = [](const Part& a, const Part& b) __attribute__((always_inline))->Part { return b > a ? b : a; };
  V most = row[0];
  for_each_stretch<V>(
      n, [&](auto at) __attribute__((always_inline)) { most = V::of(most, at.kept(at(row), row[0]), larger); });
  return reduced(most, larger);
}

/// vector_exp() of each lane, to the same bits: Cephes' expf, as there.
template <std::size_t kBytes>
inline __attribute__((always_inline)) Lanes<float, kBytes> exp_of(const Lanes<float, kBytes>& lanes) {
  using Part = typename Lanes<float, kBytes>::Part;
  using Wholes = typename Lanes<float, kBytes>::Wholes;
  return Lanes<float, kBytes>::of(
      lanes, lanes, [](const Part& x, const Part&) __attribute__((always_inline))->Part {
        constexpr float kMagic = 12582912.0F;
        const Part zero = {};
        const Part low = x < -87.3F ? zero - 87.3F : x;
        const Part bounded = low > 88.7F ? zero + 88.7F : low;
        const Part shifted = bounded * 1.44269504F + kMagic;
        const Part n = shifted - kMagic;
        const Part r = (bounded - n * 0.693359375F) - n * -2.12194440e-4F;
        Part p = zero + 1.9875691500e-4F;
        p = p * r + 1.3981999507e-3F;
        p = p * r + 8.3334519073e-3F;
        p = p * r + 4.1665795894e-2F;
        p = p * r + 1.6666665459e-1F;
        p = p * r + 5.0000001201e-1F;
        p = p * r * r + r + 1.0F;
        const Wholes whole = std::bit_cast<Wholes>(shifted) - std::bit_cast<std::int32_t>(kMagic);
        const Wholes half = whole >> 1;
        const Part first = std::bit_cast<Part>((half + 127) << 23);
        const Part second = std::bit_cast<Part>((whole - half + 127) << 23);
        const Part y = p * first * second;
        return x < -87.3F ? zero : x > 88.72F ? zero + INFINITY : y;
      });
}
template <std::size_t kBytes>
inline __attribute__((always_inline)) Lanes<double, kBytes> exp_of(const Lanes<double, kBytes>& x) {
  double each[kLanes];
  x.store(each);
  for (double& e : each) e = std::exp(e);
  return Lanes<double, kBytes>::load(each);
}

/// exp(x - largest) into `out` (null: not kept; may be `row`), and their sum.
template <typename V>
inline __attribute__((always_inline)) typename V::Element exponentials(const typename V::Element* row, std::int64_t n,
                                                                       typename V::Element largest,
                                                                       typename V::Element* out) {
  return sum_over<V>(
      n, [=](auto at) __attribute__((always_inline)) {
        const V e = exp_of(at(row) - largest);
        if (out != nullptr) at.store(out, e);
        return e;
      });
}

}  // namespace hfta::fusion::simd
