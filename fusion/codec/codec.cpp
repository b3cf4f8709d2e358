// Bytes: the step as a float (0: every block is kept as it is); a byte for each block, the bits of its codes, 32 for
// one kept as it is; then, block after block, as many words as it has bits, word b holding bit b of its 32 codes.
#include "fusion/codec/codec.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.hpp"
#include "fusion/codec/block.hpp"
#include "fusion/simd/multiversion.hpp"

namespace hfta::fusion {
namespace {

constexpr std::size_t kHeader = sizeof(float), kBlockBytes = kCodecBlock * sizeof(float), kWord = sizeof(std::uint32_t);
constexpr std::uint8_t kAsItIs = 32;  // bits of a block

std::size_t blocks_of(std::size_t n) { return (n + kCodecBlock - 1) / kCodecBlock; }

float next_below(float x) { return std::nextafter(x, 0.0F); }

codec::Quantiser quantiser(float bound) {
  if (!(bound >= 0x1p-100F && bound <= 0x1p100F)) return {};
  codec::Quantiser by;
  by.step = 2 * bound;
  by.inverse = 1 / by.step;
  if (static_cast<double>(by.inverse) * static_cast<double>(by.step) > 1) by.inverse = next_below(by.inverse);
  by.tolerance = next_below(static_cast<float>(static_cast<double>(bound) * (1 + 0x1p-20)));
  return by;
}

// A whole block at `x`; 32 words at `to` are written, whatever it needs.
template <typename R>
inline __attribute__((always_inline)) std::uint8_t encode_block(const float* x, const codec::Quantiser& by,
                                                                std::byte* to) {
  codec::Block<R::kBytes> block;
  block.load(x);
  block.quantise(by);
  const std::uint8_t bits = block.bits();
  if (bits == 0) return 0;
  if (bits == kAsItIs) {
    std::memcpy(to, x, kBlockBytes);
    return kAsItIs;
  }
  block.transpose();
  block.store(to);  // the words behind the last are the next block's
  return bits;
}

template <typename R>
inline __attribute__((always_inline)) std::byte* encode_all(R, std::span<const float> x, const codec::Quantiser& by,
                                                            std::byte* widths, std::byte* to) {
  const std::size_t whole = x.size() / kCodecBlock, rest = x.size() % kCodecBlock;
  for (std::size_t b = 0; b < whole; ++b) {
    const std::uint8_t bits = encode_block<R>(x.data() + b * kCodecBlock, by, to);
    widths[b] = std::byte{bits};
    to += bits * kWord;
  }
  if (rest > 0) {
    float last[kCodecBlock] = {};
    std::memcpy(last, x.data() + whole * kCodecBlock, rest * sizeof(float));
    const std::uint8_t bits = encode_block<R>(last, by, to);
    widths[whole] = std::byte{bits};
    to += bits * kWord;
  }
  return to;
}

template <typename R>
inline __attribute__((always_inline)) void decode_block(const std::byte* from, std::uint8_t bits, float step,
                                                        float* x) {
  codec::Block<R::kBytes> block;
  if (bits > 0) {
    block.load(from);
    if (bits != kAsItIs) {
      block.cut(bits);
      block.transpose();
      block.restore(step);
    }
  }
  block.store(x);
}

template <typename R>
inline __attribute__((always_inline)) void decode_all(R, std::span<const std::byte> bytes, std::span<float> x) {
  float step = 0;
  std::memcpy(&step, bytes.data(), kHeader);
  const std::byte* const widths = bytes.data() + kHeader;
  const std::size_t blocks = blocks_of(x.size());
  const std::byte* from = widths + blocks;
  const std::byte* const end = bytes.data() + bytes.size();
  for (std::size_t b = 0; b < blocks; ++b) {
    const auto bits = std::to_integer<std::uint8_t>(widths[b]);
    const std::size_t at = b * kCodecBlock, count = std::min(kCodecBlock, x.size() - at);
    std::byte words[kBlockBytes];
    const std::byte* source = from;
    if (static_cast<std::size_t>(end - from) < kBlockBytes) {  // a block reads 32 words, however few it has
      std::memcpy(words, from, bits * kWord);
      source = words;
    }
    if (count == kCodecBlock) {
      decode_block<R>(source, bits, step, x.data() + at);
    } else {
      float last[kCodecBlock];
      decode_block<R>(source, bits, step, last);
      std::memcpy(x.data() + at, last, count * sizeof(float));
    }
    from += bits * kWord;
  }
}

// That the widths, which say where everything lies, are such as encode() writes.
void check(std::span<const std::byte> bytes, std::size_t n) {
  const std::size_t blocks = blocks_of(n);
  std::size_t wanted = kHeader + blocks;
  bool sound = bytes.size() >= wanted;
  if (sound) {
    std::size_t words = 0, most = 0;
    for (const std::byte width : bytes.subspan(kHeader, blocks)) {
      words += std::to_integer<std::size_t>(width);
      most = std::max(most, std::to_integer<std::size_t>(width));
    }
    wanted += words * kWord;
    sound = most <= kAsItIs && bytes.size() == wanted;
  }
  if (!sound) throw Error(ErrorKind::kInternal, "codec: found bytes that no encoder wrote for so many values");
}

}  // namespace

std::size_t most_encoded_bytes(std::size_t n) { return kHeader + blocks_of(n) * (1 + kBlockBytes); }

std::size_t encode(std::span<const float> x, float bound, std::span<std::byte> out) {
  if (out.size() < most_encoded_bytes(x.size())) {
    throw Error(ErrorKind::kInternal, "codec: found less room than the values may need");
  }
  const codec::Quantiser by = quantiser(bound);
  std::memcpy(out.data(), &by.step, kHeader);
  std::byte* const widths = out.data() + kHeader;
  std::byte* to = widths + blocks_of(x.size());
  if (by.step > 0) {
    to = simd::multiversion([&](auto r) { return encode_all(r, x, by, widths, to); });
  } else {
    std::fill(widths, to, std::byte{kAsItIs});
    const std::size_t padded = blocks_of(x.size()) * kBlockBytes;
    if (!x.empty()) std::memcpy(to, x.data(), x.size_bytes());
    std::memset(to + x.size_bytes(), 0, padded - x.size_bytes());
    to += padded;
  }
  return static_cast<std::size_t>(to - out.data());
}

void decode(std::span<const std::byte> bytes, std::span<float> x) {
  check(bytes, x.size());
  simd::multiversion([&](auto r) { decode_all(r, bytes, x); });
}

}  // namespace hfta::fusion
