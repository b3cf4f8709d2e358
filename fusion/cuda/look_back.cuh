#pragma once
/// The sum over all tiles in front of one, while they are still being worked on: a scan in a single pass by decoupled
/// look-back (Merrill and Garland, NVIDIA technical report NVR-2016-002).
///
/// A tile says what it adds as soon as it knows, and the sum up to its own end once it knows that. Who looks back adds
/// what tiles have said until one has said a whole sum. Tiles are handed out in order, by a counter: whoever is waited
/// for has begun, so waiting ends whatever the order in which the device starts blocks.

#include <cstddef>
#include <cstdint>

#include "fusion/cuda/warps.cuh"

namespace hfta::fusion::cuda {

/// One word per tile: what it has said, and in the upper two bits of which kind. One store or load moves both at once.
namespace tile_state {
constexpr int kKindAt = 62;
constexpr std::uint64_t kPart = std::uint64_t{1} << kKindAt;   ///< what the tile adds; 0: nothing yet
constexpr std::uint64_t kWhole = std::uint64_t{2} << kKindAt;  ///< the sum up to its end
constexpr std::uint64_t kValue = kPart - 1;
}  // namespace tile_state

/// The next number of `counter`, the same for all threads of the block.
__device__ inline unsigned next_ticket(unsigned* counter) {
  __shared__ unsigned ticket;
  if (threadIdx.x == 0) ticket = atomicAdd(counter, 1U);
  __syncthreads();
  return ticket;
}

/// Sum over the warp's lanes, in all of them.
__device__ inline std::uint64_t sum_of_warp(std::uint64_t value) {
  for (unsigned by = kLanes / 2; by > 0; by /= 2) value += __shfl_xor_sync(kWholeWarp, value, by);
  return value;
}

/// Says what `tile` adds. One thread.
__device__ inline void say_part(volatile std::uint64_t* states, std::size_t tile, std::uint64_t adds) {
  states[tile] = (tile == 0 ? tile_state::kWhole : tile_state::kPart) | adds;
}

/// The sum over the tiles in front of `tile`, which has said its part; says the sum up to its end. A whole warp; waits.
__device__ inline std::uint64_t look_back(volatile std::uint64_t* states, std::size_t tile, std::uint64_t adds) {
  if (tile == 0) return 0;
  const unsigned lane = threadIdx.x % kLanes;
  std::uint64_t before = 0;
  for (std::size_t end = tile;; end -= kLanes) {
    std::uint64_t state = tile_state::kWhole;  // in front of the first tile
    if (lane < end) {
      do {
        state = states[end - 1 - lane];
      } while (state == 0);
    }
    const unsigned whole = __ballot_sync(kWholeWarp, (state & tile_state::kWhole) != 0);
    const unsigned nearest = whole == 0 ? kLanes : static_cast<unsigned>(__ffs(whole)) - 1;
    before += sum_of_warp(lane <= nearest ? state & tile_state::kValue : 0);
    if (whole != 0) break;
  }
  if (lane == 0) states[tile] = tile_state::kWhole | (before + adds);
  return before;
}

}  // namespace hfta::fusion::cuda
