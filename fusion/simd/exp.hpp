#pragma once
/// exp() and erf() in a form that compilers turn into vector instructions, without fused multiply-adds: the same bits
/// with every instruction set. What SLEEF and Highway would bring: THIRD_PARTY.md.

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

/// Within 3 ulp; NaN of NaN. N. Juffa's erff (stackoverflow.com/questions/35148198): a polynomial in the middle, beyond
/// it 1 - exp(another); exp is the one above.
inline __attribute__((always_inline)) float vector_erf(float x) {
  const float t = std::abs(x), s = x * x;
  float p = -5.96761703e-4F;
  p = p * s + 4.99119423e-3F;
  p = p * s - 2.67681349e-2F;
  p = p * s + 1.12819925e-1F;
  p = p * s - 3.76125336e-1F;
  p = p * s + 1.28379166e-1F;
  float q = (-1.72853470e-5F * t + 3.83197126e-4F) * s + (-3.88396438e-3F * t + 2.42546219e-2F);
  q = q * t - 1.06777877e-1F;
  q = q * t - 6.34846687e-1F;
  q = q * t - 1.28717512e-1F;
  const float far = std::copysign(1.0F - vector_exp(q * t - t), x);
  return t > 0.927734375F ? far : p * x + x;
}

inline double vector_erf(double x) { return std::erf(x); }

}  // namespace hfta::fusion::simd
