#pragma once
/// exp() and the normal distribution in a form that compilers turn into vector instructions. The bits are the same with
/// every instruction set, but where multiply-adds are fused, as in the CPU's kernels (fusion/cpu/CMakeLists.txt). What
/// SLEEF and Highway would bring: THIRD_PARTY.md.

#include <bit>
#include <cmath>
#include <cstdint>

namespace hfta::fusion::simd {

/// Within 2 ulp; 0 below -87.3, infinity above 88.7, NaN of NaN. Range reduction (Cody and Waite's two-part ln 2) and
/// polynomial are those of expf in S. Moshier's Cephes (netlib.org/cephes, single/expf.c); rounding by a sum with
/// 1.5 * 2^23 and the two factors of 2^n are common practice.
inline __attribute__((always_inline)) float vector_exp(float x) {
  constexpr float kMagic = 12582912.0F;  // 1.5 * 2^23: adding it rounds to a whole number
  const float low = x < -87.3F ? -87.3F : x;
  const float bounded = low > 88.7F ? 88.7F : low;
  const float shifted = bounded * 1.44269504F + kMagic;
  const float n = shifted - kMagic;
  const float r = (bounded - n * 0.693359375F) - n * -2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  // 2^n in two factors: n may be 128, which has no float of its own.
  const std::int32_t whole = std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(kMagic);
  const std::int32_t half = whole >> 1;
  const float first = std::bit_cast<float>((half + 127) << 23),
              second = std::bit_cast<float>((whole - half + 127) << 23);
  const float y = p * first * second;
  return x < -87.3F ? 0.0F : x > 88.72F ? INFINITY : y;
}

inline double vector_exp(double x) { return std::exp(x); }

/// The standard normal distribution at x.
template <typename T>
struct Normal {
  T below, density;  ///< The probability of less than x; the density there.
};

/// `below` is within 3.1e-7 of itself for x > -1, and within 1.5e-7 for all; both are NaN of NaN. Of t = |x| / sqrt(2)
/// the probability beyond it is exp(-t^2) g / 2, and exp(-t^2) is the density but for a factor: one exp() gives both. g
/// is a polynomial in u = 1 / (1 + 0.7 t) - 0.625, after Hastings' approximations (Abramowitz and Stegun, 7.1.26): its
/// coefficients are of least squares, weighted until the largest relative error, 1.3e-8 for t < 9.4 before they were
/// rounded, was least.
inline __attribute__((always_inline)) Normal<float> vector_normal(float x) {
  const float power = vector_exp(x * x * -0.5F), u = 1.0F / (1.0F + 0.494974747F * std::abs(x)) - 0.625F;
  float g = -0.077244014F;
  g = g * u + 0.0432038807F;
  g = g * u + 0.0806631993F;
  g = g * u - 0.122776477F;
  g = g * u + 0.0297997252F;
  g = g * u + 0.154834879F;
  g = g * u - 0.219171092F;
  g = g * u - 0.145445646F;
  g = g * u + 0.699532954F;
  g = g * u + 1.17995651F;
  g = g * u + 0.470011994F;
  const float beyond = 0.5F * power * g;
  return {x < 0.0F ? beyond : 1.0F - beyond, power * 0.39894228F};
}

inline Normal<double> vector_normal(double x) {
  return {0.5 * std::erfc(x * -0.70710678118654752440), std::exp(x * x * -0.5) * 0.39894228040143267794};
}

}  // namespace hfta::fusion::simd
