#pragma once
/// Activations of one element that several kernels share, in a form that compilers turn into vector instructions.

#include <cmath>

#include "fusion/cpu/kernels/pointwise.hpp"
#include "fusion/simd/exp.hpp"

namespace hfta::fusion::cpu {

template <typename T>
inline __attribute__((always_inline)) T sigmoid(T x) {
  return T{1} / (T{1} + simd::vector_exp(-x));
}

template <typename T>
inline __attribute__((always_inline)) T tangent(T x) {  // through exp, as x/(1+..) would lose the digits of small ones
  const T square = x * x;
  if constexpr (sizeof(T) == 8) return std::tanh(x);
  // tanhf of S. Moshier's Cephes (netlib.org/cephes, single/tanhf.c): a polynomial where |x| < 0.625.
  const T small =
      x + x * square *
              ((((T(-5.70498872745e-3) * square + T(2.06390887954e-2)) * square - T(5.37397155531e-2)) * square +
                T(1.33314422036e-1)) *
                   square -
               T(3.33332819422e-1));
  const T magnitude = std::abs(x);
  const T large = T{1} - T{2} / (simd::vector_exp(magnitude + magnitude) + T{1});
  return magnitude < T(0.625) ? small : x < T{0} ? -large : large;
}

// ---- Those whose slope costs an exp or more, most of which it shares with the value ----

template <typename T>
struct ValueAndSlope {
  T value, slope;
};

template <typename T>
inline __attribute__((always_inline)) ValueAndSlope<T> gelu(T x) {
  const simd::Normal<T> normal = simd::vector_normal(x);
  return {x * normal.below, normal.below + x * normal.density};
}

// GELU's approximation by tanh: Hendrycks and Gimpel 2016 (arXiv 1606.08415), section 2.
template <typename T>
inline __attribute__((always_inline)) ValueAndSlope<T> gelu_tanh(T x) {
  constexpr T kRoot = T(0.79788456080286535588);
  const T t = tangent(kRoot * (x + T(0.044715) * x * x * x));
  const T inner = kRoot * (T{1} + T(3 * 0.044715) * x * x);
  return {x * T(0.5) * (T{1} + t), T(0.5) * (T{1} + t) + T(0.5) * x * (T{1} - t * t) * inner};
}

template <typename T>
inline __attribute__((always_inline)) ValueAndSlope<T> silu(T x) {
  const T s = sigmoid(x), y = x * s;
  return {y, s + y * (T{1} - s)};
}

// tanh(log(1 + e)) = e (e + 2) / (e (e + 2) + 2), where e = exp(x).
template <typename T>
inline __attribute__((always_inline)) ValueAndSlope<T> mish(T x) {
  const T e = simd::vector_exp(x > T{20} ? T{20} : x), n = e * (e + T{2});
  const T t = x > T{20} ? T{1} : n / (n + T{2});
  return {x * t, t + x * sigmoid(x) * (T{1} - t * t)};
}

/// visit(f), where f(x) is the ValueAndSlope of an op that has_costly_slope().
template <typename T, typename Visit>
inline __attribute__((always_inline)) void with_value_and_slope(Unary op, Visit visit) {
  switch (op) {
    case Unary::kGelu:
      return visit([](T x) { return gelu(x); });
    case Unary::kGeluTanh:
      return visit([](T x) { return gelu_tanh(x); });
    case Unary::kSilu:
      return visit([](T x) { return silu(x); });
    case Unary::kMish:
      return visit([](T x) { return mish(x); });
    default:
      return;  // has_costly_slope() is false
  }
}

}  // namespace hfta::fusion::cpu
