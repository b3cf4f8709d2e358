#pragma once
/// Activations of one element that several kernels share, in a form that compilers turn into vector instructions.

#include <cmath>

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

}  // namespace hfta::fusion::cpu
