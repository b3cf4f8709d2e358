#pragma once
/// Numbers as they are stored: what they are as C++'s types. Internal to fusion/data.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "fusion/numbers.hpp"
#include "fusion/simd/narrow.hpp"

namespace hfta::fusion {

using simd::Bfloat16;
using simd::Half;
using simd::number_of;
using simd::to_float;

static_assert(std::endian::native == std::endian::little, "numbers are taken from files as they lie there");

/// Number `i`; wherever it lies.
template <typename Stored>
[[gnu::always_inline]] inline Stored element(const std::byte* data, std::int64_t i) {
  Stored value;
  std::memcpy(&value, data + i * static_cast<std::int64_t>(sizeof(Stored)), sizeof(Stored));
  return value;
}

/// float32 holds every value of the stored type.
template <typename Stored>
inline constexpr bool kFitsFloat = std::is_same_v<Stored, float> || sizeof(Stored) <= 2;

/// work(Stored{}) with the type that numbers are stored as.
template <typename Work>
decltype(auto) with_type(NumberType type, const Work& work) {
  switch (type.kind) {
    case 'f':
      if (type.width == 2) return work(Half{});
      if (type.width == 4) return work(float{});
      return work(double{});
    case 'B':
      return work(Bfloat16{});
    case 'i':
      if (type.width == 1) return work(std::int8_t{});
      if (type.width == 2) return work(std::int16_t{});
      if (type.width == 4) return work(std::int32_t{});
      return work(std::int64_t{});
    default:  // unsigned, and booleans as 0 and 1
      if (type.width == 1) return work(std::uint8_t{});
      if (type.width == 2) return work(std::uint16_t{});
      if (type.width == 4) return work(std::uint32_t{});
      return work(std::uint64_t{});
  }
}

}  // namespace hfta::fusion
