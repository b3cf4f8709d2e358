#pragma once
/// The format of encoded values, for the CPU's coder and the CUDA kernels alike. C++17.
///
/// Words of 32 bits, lowest byte first: the step as a float (0: every block is kept as it is); a byte for each block,
/// the bits of its codes, 32 for one kept as it is, and zeros up to a whole word; then, block after block, as many
/// words as it has bits, word b holding bit b of its 32 codes.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/both.hpp"

namespace hfta::fusion::codec {

constexpr std::size_t kBlock = 32;  ///< Values of a block.
constexpr std::size_t kWord = sizeof(std::uint32_t);
constexpr std::size_t kHeaderWords = 1;
constexpr std::uint8_t kAsItIs = 32;   ///< Bits of a block that is kept as it is.
constexpr float kMagic = 12582912.0F;  ///< 1.5 * 2^23: x + kMagic - kMagic is x, rounded to a whole number.
constexpr std::uint32_t kMagicBits = 0x4b400000;

HFTA_BOTH std::size_t blocks_of(std::size_t n) { return (n + kBlock - 1) / kBlock; }

/// Words that the bytes of n values' blocks fill.
HFTA_BOTH std::size_t width_words(std::size_t n) { return (blocks_of(n) + kWord - 1) / kWord; }

/// How values are quantised. step = 2 bound.
struct Quantiser {
  float step = 0, inverse = 0;  ///< inverse: 1 / step, or the next float below it: |x| <= bound gives 0.
  float tolerance = 0;          ///< A value that comes back further from what it was keeps its block as it is.
};

/// The float before x, which is positive.
HFTA_BOTH float next_below(float x) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  --bits;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

HFTA_BOTH Quantiser quantiser(float bound) {
  Quantiser by;
  if (!(bound >= 0x1p-100F && bound <= 0x1p100F)) return by;
  by.step = 2 * bound;
  by.inverse = 1 / by.step;
  if (static_cast<double>(by.inverse) * static_cast<double>(by.step) > 1) by.inverse = next_below(by.inverse);
  by.tolerance = next_below(static_cast<float>(static_cast<double>(bound) * (1 + 0x1p-20)));
  return by;
}

}  // namespace hfta::fusion::codec
