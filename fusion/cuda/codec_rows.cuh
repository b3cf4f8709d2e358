#pragma once
/// A row of the codec's kernels: 128 values of a warp's, four codec blocks. A lane has four values that are neighbours,
/// and of the words that they become four that follow each other; eight lanes have a block. For codec_kernels.cu.

#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstring>

#include "fusion/codec/format.hpp"
#include "fusion/cuda/launch.cuh"
#include "fusion/cuda/look_back.cuh"

namespace hfta::fusion::cuda {

constexpr unsigned kEach = 4;                                // values of a row that a lane has
constexpr unsigned kRow = kLanes * kEach;                    // values
constexpr unsigned kRowBlocks = kRow / codec::kBlock;        // blocks of a row, whose widths are one word
constexpr unsigned kBlockLanes = kLanes / kRowBlocks;        // lanes that share a codec block
constexpr unsigned kRows = 32;                               // rows of a tile: a lane for each, where offsets are added
constexpr unsigned kWarpRows = kRows / (kThreads / kLanes);  // rows of a tile that a warp has
constexpr unsigned kTile = kRow * kRows;                     // values, and words at most
static_assert(codec::kAsItIs == codec::kBlock && codec::kBlock == kEach * kBlockLanes, "a lane has four words, too");

using Words = std::uint32_t[kEach];

__device__ inline std::uint32_t bits_of(float x) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
__device__ inline float float_of(std::uint32_t bits) {
  float x = 0;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

__device__ inline unsigned lane_of_thread() { return threadIdx.x % kLanes; }

/// Bit b of word i and bit i of word b change places, by squares of 2s words and bits (codec::Block::transpose). Words
/// are a lane's own for s = 1 and 2, and those of a lane s / 4 away for s = 4, 8 and 16.
template <unsigned s>
__device__ inline void stage(Words& words) {
  constexpr std::uint32_t kLow = 0xffffffffU / ((std::uint64_t{1} << s) + 1);  // the low s of every 2s bits
  if constexpr (s < kEach) {
    for (unsigned j = 0; j < kEach; ++j) {
      if ((j & s) != 0) continue;
      const std::uint32_t swapped = ((words[j] >> s) ^ words[j + s]) & kLow;
      words[j + s] ^= swapped;
      words[j] ^= swapped << s;
    }
  } else {
    const bool low = (threadIdx.x & (s / kEach)) == 0;
    const std::uint32_t kept = low ? kLow : ~kLow;
    const unsigned left = low ? s : 32 - s;
    for (std::uint32_t& word : words) {
      const std::uint32_t other = __shfl_xor_sync(kWholeWarp, word, s / kEach);
      word = (word & kept) | (__funnelshift_l(other, other, left) & ~kept);
    }
  }
}
__device__ inline void transpose(Words& words) {
  stage<16>(words);
  stage<8>(words);
  stage<4>(words);
  stage<2>(words);
  stage<1>(words);
}

/// The code of x, as codec::Block::quantise makes it.
__device__ inline std::uint32_t code_of(float x, const codec::Quantiser& by) {
  const std::uint32_t q = bits_of(x * by.inverse + codec::kMagic) - codec::kMagicBits;
  const auto whole = static_cast<std::int32_t>(q);
  const float off = x - static_cast<float>(whole) * by.step;
  return fabsf(off) <= by.tolerance ? (q << 1) ^ static_cast<std::uint32_t>(whole >> 31) : 0xffffffffU;
}
__device__ inline std::uint32_t value_of(std::uint32_t code, float step) {
  const std::uint32_t q = (code >> 1) ^ (0U - (code & 1U));
  return bits_of(static_cast<float>(static_cast<std::int32_t>(q)) * step);
}

/// Values become words of the format; returns how many of its block's count. `left`: values in front of the slot's end,
/// from the row's first on.
__device__ inline unsigned encode_row(Words& values, const codec::Quantiser& by, std::size_t left) {
  Words codes;
  std::uint32_t any = 0;
  for (unsigned j = 0; j < kEach; ++j) {
    codes[j] = code_of(float_of(values[j]), by);
    any |= codes[j];
  }
  for (unsigned beside = 1; beside < kBlockLanes; beside *= 2) any |= __shfl_xor_sync(kWholeWarp, any, beside);
  if (by.step == 0) any = 0xffffffffU;
  const bool exists = lane_of_thread() / kBlockLanes * codec::kBlock < left;
  const unsigned width = exists ? 32 - static_cast<unsigned>(__clz(static_cast<int>(any))) : 0;
  transpose(codes);
  for (unsigned j = 0; j < kEach; ++j) values[j] = width == codec::kAsItIs ? values[j] : codes[j];
  return width;
}

__device__ inline std::uint32_t sum_of_bytes(std::uint32_t word) { return word * 0x01010101U >> 24; }

/// Offsets of the words of a tile's blocks from its first word: kept by a warp, a row in each lane.
struct Offsets {
  std::uint32_t widths, begin;  // the lane's row: a byte for each block; words in front of the row
  unsigned total;               // words of the tile

  __device__ explicit Offsets(std::uint32_t row_widths) : widths(row_widths) {
    const unsigned own = sum_of_bytes(widths);
    unsigned end = own;
    for (unsigned by = 1; by < kLanes; by *= 2) {
      const unsigned before = __shfl_up_sync(kWholeWarp, end, by);
      if (lane_of_thread() >= by) end += before;
    }
    begin = end - own;
    total = __shfl_sync(kWholeWarp, end, kLanes - 1);
  }
  /// Number of words that the lane's block has from the lane's first on, and that first one's offset in the tile.
  struct Part {
    unsigned count, at;
  };
  __device__ Part part(unsigned row) const {
    const std::uint32_t all = __shfl_sync(kWholeWarp, widths, row), before = __shfl_sync(kWholeWarp, begin, row);
    const unsigned block = lane_of_thread() / kBlockLanes, in_block = lane_of_thread() % kBlockLanes * kEach;
    const std::uint32_t in_front = all & ((1U << 8 * block) - 1);
    const unsigned width = all >> 8 * block & 0xffU;
    return {width > in_block ? width - in_block : 0, before + sum_of_bytes(in_front) + in_block};
  }
};

/// A row's widths, limited to 32 each.
__device__ inline std::uint32_t at_most_32(std::uint32_t widths) {
  std::uint32_t all = 0;
  for (unsigned b = 0; b < kRowBlocks; ++b) {
    const std::uint32_t width = widths >> 8 * b & 0xffU;
    all |= (width < codec::kAsItIs ? width : codec::kAsItIs) << 8 * b;
  }
  return all;
}

}  // namespace hfta::fusion::cuda
