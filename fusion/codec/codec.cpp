#include "fusion/codec/codec.hpp"

#include <algorithm>
#include <cstring>

#include "base/error.hpp"
#include "fusion/codec/block.hpp"
#include "fusion/codec/format.hpp"
#include "fusion/simd/multiversion.hpp"

namespace hfta::fusion {
namespace {

using codec::blocks_of, codec::kAsItIs, codec::kBlock, codec::kWord;

constexpr std::size_t kHeader = codec::kHeaderWords * kWord, kBlockBytes = kBlock * sizeof(float);

// Encodes a whole block at `x`; 32 words at `to` are written, however few it needs.
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
  const std::size_t whole = x.size() / kBlock, rest = x.size() % kBlock;
  for (std::size_t b = 0; b < whole; ++b) {
    const std::uint8_t bits = encode_block<R>(x.data() + b * kBlock, by, to);
    widths[b] = std::byte{bits};
    to += bits * kWord;
  }
  if (rest > 0) {
    float last[kBlock] = {};
    std::memcpy(last, x.data() + whole * kBlock, rest * sizeof(float));
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
  const std::byte* from = widths + codec::width_words(x.size()) * kWord;
  const std::byte* const end = bytes.data() + bytes.size();
  for (std::size_t b = 0; b < blocks; ++b) {
    const auto bits = std::to_integer<std::uint8_t>(widths[b]);
    const std::size_t at = b * kBlock, count = std::min(kBlock, x.size() - at);
    std::byte words[kBlockBytes];
    const std::byte* source = from;
    if (static_cast<std::size_t>(end - from) < kBlockBytes) {  // a block reads 32 words, however few it has
      std::memcpy(words, from, bits * kWord);
      source = words;
    }
    if (count == kBlock) {
      decode_block<R>(source, bits, step, x.data() + at);
    } else {
      float last[kBlock];
      decode_block<R>(source, bits, step, last);
      std::memcpy(x.data() + at, last, count * sizeof(float));
    }
    from += bits * kWord;
  }
}

// Checks that the widths, which say where everything lies, are such as encode() writes.
void check(std::span<const std::byte> bytes, std::size_t n) {
  const std::size_t blocks = blocks_of(n), width_bytes = codec::width_words(n) * kWord;
  std::size_t wanted = kHeader + width_bytes;
  bool sound = bytes.size() >= wanted;
  if (sound) {
    std::size_t words = 0;
    const std::span<const std::byte> widths = bytes.subspan(kHeader, width_bytes);
    for (std::size_t b = 0; b < width_bytes; ++b) {
      const auto width = std::to_integer<std::size_t>(widths[b]);
      words += width;
      sound = sound && width <= std::size_t{b < blocks ? kAsItIs : std::uint8_t{0}};
    }
    wanted += words * kWord;
    sound = sound && bytes.size() == wanted;
  }
  if (!sound) throw Error(ErrorKind::kInternal, "codec: found bytes that no encoder wrote for so many values");
}

}  // namespace

std::size_t most_encoded_bytes(std::size_t n) {
  return kHeader + codec::width_words(n) * kWord + blocks_of(n) * kBlockBytes;
}

std::size_t encode(std::span<const float> x, float bound, std::span<std::byte> out) {
  if (out.size() < most_encoded_bytes(x.size())) {
    throw Error(ErrorKind::kInternal, "codec: found less room than the values may need");
  }
  const codec::Quantiser by = codec::quantiser(bound);
  std::memcpy(out.data(), &by.step, kHeader);
  std::byte* const widths = out.data() + kHeader;
  std::byte* to = widths + codec::width_words(x.size()) * kWord;
  std::fill(widths, to, std::byte{});
  if (by.step > 0) {
    to = simd::multiversion([&](auto r) { return encode_all(r, x, by, widths, to); });
  } else {
    std::fill_n(widths, blocks_of(x.size()), std::byte{kAsItIs});
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
