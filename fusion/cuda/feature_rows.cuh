#pragma once
/// Code of kernels that go down the columns of rows of features: a block has 32 features and a part of the rows of a
/// slot; a thread has one feature and every eighth row of the part, so that a warp reads 32 numbers side by side.

#include <cstddef>

#include "fusion/cuda/warps.cuh"

namespace hfta::fusion::cuda {

constexpr unsigned kGroups = kThreads / kLanes;    // rows that a block reads side by side
constexpr std::size_t kRowsOfPart = 16 * kGroups;  // rows of a part at least, but for the last part
constexpr int kAtOnce = 8;                         // rows of a thread that are under way at a time
constexpr std::size_t kRowsAtOnce = kAtOnce * kGroups;

__host__ __device__ inline Parts parts_of(std::size_t rows) { return parts_of(rows, kRowsOfPart); }

/// A block for each 32 features, slot and part.
inline dim3 grid_of_features(std::size_t rows, std::size_t features, int slots) {
  return {static_cast<unsigned>((features + kLanes - 1) / kLanes), static_cast<unsigned>(slots),
          static_cast<unsigned>(parts_of(rows).number)};
}

/// A thread's place in such a grid: its feature, which may be none, and its rows first, first + kGroups, ... before
/// last.
struct Place {
  unsigned slot, lane, group;
  std::size_t feature, first, last;
};
__device__ inline Place place_in(std::size_t rows) {
  const Parts parts = parts_of(rows);
  const unsigned lane = threadIdx.x % kLanes, group = threadIdx.x / kLanes;
  const std::size_t begin = blockIdx.z * parts.rows, end = begin + parts.rows;
  const std::size_t feature = static_cast<std::size_t>(blockIdx.x) * kLanes + lane;
  return {blockIdx.y, lane, group, feature, begin + group, end < rows ? end : rows};
}

/// Some of a thread's rows, from `row` on. All are read before one is used: so many reads are under way at a time.
template <typename T>
struct Numbers {
  T of[kAtOnce];
  int count = 0;

  /// 0 behind the last row.
  __device__ Numbers(const T* x, const Place& at, std::size_t row, std::size_t row_stride) {
    for (int i = 0; i < kAtOnce; ++i, row += kGroups) {
      of[i] = row < at.last ? x[row * row_stride] : T{0};
      count += row < at.last ? 1 : 0;
    }
  }
};

/// Calls of(row, the row's number) for the thread's rows of x, all of which begin at the thread's feature.
template <typename T, typename Of>
__device__ void for_numbers(const T* x, const Place& at, std::size_t row_stride, Of of) {
  for (std::size_t r = at.first; r < at.last; r += kRowsAtOnce) {
    const Numbers<T> numbers(x, at, r, row_stride);
    for (int i = 0; i < kAtOnce; ++i) {
      if (i < numbers.count) of(r + static_cast<std::size_t>(i) * kGroups, numbers.of[i]);
    }
  }
}
/// Calls of(row, x's number, y's number) for the thread's rows of x and y.
template <typename T, typename Of>
__device__ void for_numbers(const T* x, const T* y, const Place& at, std::size_t row_stride, Of of) {
  for (std::size_t r = at.first; r < at.last; r += kRowsAtOnce) {
    const Numbers<T> xs(x, at, r, row_stride), ys(y, at, r, row_stride);
    for (int i = 0; i < kAtOnce; ++i) {
      if (i < xs.count) of(r + static_cast<std::size_t>(i) * kGroups, xs.of[i], ys.of[i]);
    }
  }
}

/// Joins the groups' values one after the other, for the threads of group 0. All threads of the block call it.
template <typename T, typename Join>
__device__ T over_groups(T (&of_groups)[kGroups][kLanes], const Place& at, T own, Join join) {
  of_groups[at.group][at.lane] = own;
  __syncthreads();
  for (unsigned g = 1; at.group == 0 && g < kGroups; ++g) own = join(own, of_groups[g][at.lane]);
  return own;
}

/// Offset of a part's results in [slot, part, feature].
__device__ inline std::size_t place_of_part(std::size_t slot, std::size_t part, std::size_t parts,
                                            std::size_t features) {
  return (slot * parts + part) * features;
}

/// Grid to join the parts' results, which are rows as well: a block for each 32 features and slot; a thread has
/// every eighth part.
inline dim3 grid_of_joins(std::size_t features, int slots) {
  return {static_cast<unsigned>((features + kLanes - 1) / kLanes), static_cast<unsigned>(slots), 1};
}
__device__ inline Place place_in_parts(std::size_t parts) {
  const unsigned lane = threadIdx.x % kLanes, group = threadIdx.x / kLanes;
  return {blockIdx.y, lane, group, static_cast<std::size_t>(blockIdx.x) * kLanes + lane, group, parts};
}

}  // namespace hfta::fusion::cuda
