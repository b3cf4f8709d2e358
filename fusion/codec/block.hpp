#pragma once
/// One block of the codec in vector registers: quantised, and transposed bit by bit. For codec.cpp; everything is
/// inlined into what it passes to multiversion(), and compiled with -Wno-psabi.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "fusion/codec/format.hpp"
#include "fusion/simd/vector.hpp"

namespace hfta::fusion::codec {

/// 32 words of 32 bits in registers of `kBytes`.
template <std::size_t kBytes>
struct Block {
  // NOLINTBEGIN(modernize-use-using): attributes
  typedef std::uint32_t Words __attribute__((vector_size(kBytes)));
  typedef std::int32_t Wholes __attribute__((vector_size(kBytes)));
  typedef float Floats __attribute__((vector_size(kBytes)));
  // NOLINTEND(modernize-use-using)
  static constexpr std::size_t kWidth = kBytes / 4, kParts = kBlock / kWidth;
  using Lanes = std::make_index_sequence<kWidth>;

  Words part[kParts] = {};

  inline __attribute__((always_inline)) void load(const void* from) {
    each([&](auto p) __attribute__((always_inline)) {
      __builtin_memcpy(&part[p], static_cast<const char*>(from) + p * kBytes, kBytes);
    });
  }
  inline __attribute__((always_inline)) void store(void* to) const {
    each([&](auto p) __attribute__((always_inline)) {
      __builtin_memcpy(static_cast<char*>(to) + p * kBytes, &part[p], kBytes);
    });
  }

  /// Values become the zig-zag codes of their whole numbers: 0, -1, 1, -2, ... -> 0, 1, 2, 3, ...; all bits are set for
  /// a value that would not come back. Adding kMagic rounds to a whole number, whose bits are those of the sum less
  /// those of the addend.
  inline __attribute__((always_inline)) void quantise(const Quantiser& by) {
    each([&](auto p) __attribute__((always_inline)) {
      const Floats x = reinterpret_cast<Floats>(part[p]);
      const Words q = reinterpret_cast<Words>(x * by.inverse + kMagic) - kMagicBits;
      const Floats off = x - as_floats(q) * by.step;
      const Floats distance = reinterpret_cast<Floats>(reinterpret_cast<Words>(off) & 0x7fffffffU);
      const Words within = reinterpret_cast<Words>(distance <= Floats{} + by.tolerance);
      part[p] = ((q << 1) ^ sign(q)) | ~within;
    });
  }

  inline __attribute__((always_inline)) void restore(float step) {
    each([&](auto p) __attribute__((always_inline)) {
      const Words q = (part[p] >> 1) ^ (Words{} - (part[p] & 1U));
      part[p] = reinterpret_cast<Words>(as_floats(q) * step);
    });
  }

  /// Bits that the largest word has.
  [[nodiscard]] inline __attribute__((always_inline)) std::uint8_t bits() const {
    Words all = {};
    each([&](auto p) __attribute__((always_inline)) { all |= part[p]; });
    all = over_lanes<kWidth / 2>(all);
    std::uint32_t any = 0;
    __builtin_memcpy(&any, &all, sizeof any);
    return static_cast<std::uint8_t>(std::bit_width(any));
  }

  /// Words from `count` on become 0.
  inline __attribute__((always_inline)) void cut(std::uint32_t count) {
    each([&](auto p) __attribute__((always_inline)) {
      const Words at = lane(Lanes()) + static_cast<std::uint32_t>(p * kWidth);
      part[p] &= reinterpret_cast<Words>(at < Words{} + count);
    });
  }

  /// Bit b of word i and bit i of word b change places, by halves: of each square of 2s words and bits, the two off the
  /// diagonal change places, s = 16, 8, ..., 1 (Warren, Hacker's Delight, section 7-3). Its own inverse.
  inline __attribute__((always_inline)) void transpose() {
    stage<16>();
    stage<8>();
    stage<4>();
    stage<2>();
    stage<1>();
  }

 private:
  template <typename Visit>
  static inline __attribute__((always_inline)) void each(Visit visit) {
    simd::for_each_index<kParts>(visit);
  }
  // The whole numbers, which may be negative, as floats.
  [[nodiscard]] static inline __attribute__((always_inline)) Floats as_floats(const Words& q) {
    return [](auto whole) __attribute__((always_inline)) { return __builtin_convertvector(whole, Floats); }
    (reinterpret_cast<Wholes>(q));
  }
  // All bits where the number is negative.
  [[nodiscard]] static inline __attribute__((always_inline)) Words sign(const Words& q) {
    return reinterpret_cast<Words>(reinterpret_cast<Wholes>(q) >> 31);
  }
  template <std::size_t... l>
  [[nodiscard]] static inline __attribute__((always_inline)) Words lane(std::index_sequence<l...>) {
    return Words{static_cast<std::uint32_t>(l)...};
  }
  template <std::size_t s, std::size_t... l>
  [[nodiscard]] static inline __attribute__((always_inline)) Words partner(const Words& v, std::index_sequence<l...>) {
    return __builtin_shufflevector(v, v, (l ^ s)...);
  }
  template <std::size_t s, std::size_t... l>
  [[nodiscard]] static inline __attribute__((always_inline)) Words chosen(const Words& low, const Words& high,
                                                                          std::index_sequence<l...>) {
    return __builtin_shufflevector(low, high, ((l & s) == 0 ? l : l + kWidth)...);
  }

  template <std::size_t s>
  [[nodiscard]] static inline __attribute__((always_inline)) Words over_lanes(const Words& v) {
    if constexpr (s == 0) {
      return v;
    } else {
      return over_lanes<s / 2>(v | partner<s>(v, Lanes()));
    }
  }

  template <std::size_t s>
  inline __attribute__((always_inline)) void stage() {
    constexpr std::uint32_t kLow = 0xffffffffU / ((1ULL << s) + 1);  // the low s of every 2s bits
    each([&](auto p) __attribute__((always_inline)) {
      constexpr std::size_t kPart = decltype(p)::value, kBy = s / kWidth;
      if constexpr (kBy == 0) {
        const Words own = part[kPart], other = partner<s>(own, Lanes());
        part[kPart] = chosen<s>((own & kLow) | ((other & kLow) << s), (own & ~kLow) | ((other >> s) & kLow), Lanes());
      } else if constexpr ((kPart & kBy) == 0) {
        const Words swapped = ((part[kPart] >> s) ^ part[kPart + kBy]) & kLow;
        part[kPart + kBy] ^= swapped;
        part[kPart] ^= swapped << s;
      }
    });
  }
};

}  // namespace hfta::fusion::codec
