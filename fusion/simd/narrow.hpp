#pragma once
/// Floating-point numbers of 16 bits, as they are stored. Every one of them is a float.

#include <bit>
#include <cstdint>
#include <type_traits>

namespace hfta::fusion::simd {

/// IEEE 754's binary16.
struct Half {
  std::uint16_t bits;
};
/// The upper half of a float.
struct Bfloat16 {
  std::uint16_t bits;
};

/// Exact, also where the processor flushes denormal numbers; without branches, so that loops become vectors.
[[gnu::always_inline]] inline float to_float(Half half) {
  const std::uint32_t sign = std::uint32_t{half.bits} << 16 & 0x80000000U;
  const std::uint32_t exponent = half.bits & 0x7C00U;
  const std::uint32_t magnitude = (half.bits & 0x7FFFU) << 13;
  const std::uint32_t rebiased = magnitude + ((127U - 15U) << 23);
  const std::uint32_t beyond = magnitude | 0x7F800000U;  // infinity, not a number
  const auto denormal =
      std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(half.bits & 0x3FFU)) * 0x1p-24F);
  const std::uint32_t bits = exponent == 0 ? denormal : exponent == 0x7C00U ? beyond : rebiased;
  return std::bit_cast<float>(sign | bits);
}

[[gnu::always_inline]] inline float to_float(Bfloat16 number) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(number.bits) << 16);
}

/// The number itself, or a Half's or Bfloat16's as a float.
template <typename Stored>
[[gnu::always_inline]] inline auto number_of(Stored stored) {
  if constexpr (std::is_same_v<Stored, Half> || std::is_same_v<Stored, Bfloat16>) {
    return to_float(stored);
  } else {
    return stored;
  }
}

}  // namespace hfta::fusion::simd
