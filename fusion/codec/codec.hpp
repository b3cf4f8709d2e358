#pragma once
/// Floats kept in fewer bytes, each within a bound of what it was: saved activations between forward and backward.
///
/// A value x becomes the whole number q = round(x / (2 bound)), and comes back as 2 bound q. Numbers are coded in
/// blocks of 32, each with the fewest bits that hold its largest one (fixed-length coding, as cuSZp does: Huang et al.,
/// SC'23); format.hpp has the layout. The encoder decodes what it wrote and compares: a block with a value that would
/// not come back within the bound (NaN, infinity, values so large that a float's own rounding exceeds it) is kept as it
/// is. Plain C++; no state; any thread.

#include <cstddef>
#include <cstdint>
#include <span>

namespace hfta::fusion {

/// Bytes that n values need at most: a header of 4, a byte for each block, up to 3 of zeros, and every block kept as it
/// is.
[[nodiscard]] std::size_t most_encoded_bytes(std::size_t n);

/// Writes x and returns how many bytes that took; what lies behind them in `out` may be overwritten.
///
/// Each x' that decode() gives back is x itself, to the bit, or has |x - x'| <= bound (1 + 2^-20); |x| <= bound gives
/// +0 unless its block is kept as it is. A bound outside of [2^-100, 2^100], or NaN, keeps everything as it is. The
/// same bytes with every instruction set, and whether or not denormal numbers are flushed. Throws Error{kInternal} if
/// `out` holds less than most_encoded_bytes(x.size()).
std::size_t encode(std::span<const float> x, float bound, std::span<std::byte> out);

/// The values that encode() wrote: x.size() must be theirs. Throws Error{kInternal} where the bytes are not what
/// encode() writes for so many values; never reads outside of them, whatever they hold.
void decode(std::span<const std::byte> bytes, std::span<float> x);

}  // namespace hfta::fusion
