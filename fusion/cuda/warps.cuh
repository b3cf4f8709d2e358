#pragma once
/// Code of kernels that give each row of numbers to a warp, or sum over a block.

#include <cstddef>

#include "fusion/cuda/launch.cuh"

namespace hfta::fusion::cuda {

constexpr unsigned kLanes = 32, kWholeWarp = 0xffffffffU;

/// Joins the values of a warp's lanes in one order; all lanes get the result.
template <typename T, typename Join>
__device__ T over_lanes(T value, Join join) {
  for (unsigned by = kLanes / 2; by > 0; by /= 2) value = join(value, __shfl_xor_sync(kWholeWarp, value, by));
  return value;
}

struct Sum {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};

/// Sum of the block's threads' values, in a fixed order; thread 0 has it.
__device__ inline double sum_of_block(double value) {
  __shared__ double sums[kThreads];
  __syncthreads();  // who has not read an earlier sum yet
  sums[threadIdx.x] = value;
  __syncthreads();
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  return sums[0];
}

/// Calls of(slot, row, lane) for every row that is this warp's; `row` counts over all slots, which have `rows` each.
template <typename Of>
__device__ void for_rows(std::size_t rows, Of of) {
  const unsigned slot = blockIdx.y, lane = threadIdx.x % kLanes;
  const std::size_t warps = static_cast<std::size_t>(gridDim.x) * (kThreads / kLanes);
  const std::size_t first = static_cast<std::size_t>(blockIdx.x) * (kThreads / kLanes) + threadIdx.x / kLanes;
  for (std::size_t row = first; row < rows; row += warps) of(slot, slot * rows + row, lane);
}

/// A grid of a warp for each row, as far as grids go.
inline dim3 grid_of_rows(std::size_t rows, int slots) { return grid_for(rows * kLanes, slots); }

}  // namespace hfta::fusion::cuda
