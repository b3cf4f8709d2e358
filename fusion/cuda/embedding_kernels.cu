// Embeddings: a warp copies a row; for gradients a block has some rows of a table, and its warps look through a slot's
// indices for them, without sorting, and without two that add to one number.
#include <cmath>

#include "fusion/cuda/embedding_kernels.hpp"
#include "fusion/cuda/warps.cuh"

namespace hfta::fusion::cuda {
namespace {

constexpr unsigned kGroups = kThreads / kLanes;  // warps, which take turns at 32 positions each
template <typename T>
constexpr unsigned kRowsOfTile = 128 / sizeof(T);  // rows of a table; 32 KiB of sums for a block
constexpr unsigned kTurnsAtOnce = 4;               // turns of a warp whose indices are under way at a time
constexpr int kAtOnce = 8;                         // rows of dy that are under way at a time

template <typename T>
__global__ void embedding_kernel(Lookup lookup, const T* __restrict__ tables, T* __restrict__ y) {
  for_rows(lookup.positions, [&](unsigned slot, std::size_t at, unsigned lane) {
    const std::int64_t index = lookup.indices[slot * lookup.slot_stride + (at - slot * lookup.positions)];
    const bool is_row = index >= 0 && static_cast<std::size_t>(index) < lookup.rows;
    T* const to = y + at * lookup.features;
    if (is_row) {
      const T* const row = tables + (slot * lookup.rows + static_cast<std::size_t>(index)) * lookup.features;
      for (std::size_t k = lane; k < lookup.features; k += kLanes) to[k] = row[k];
    } else {
      for (std::size_t k = lane; k < lookup.features; k += kLanes) to[k] = static_cast<T>(NAN);
    }
  });
}

// An index's row in the tile that begins at row `first`; kRowsOfTile: it is in none.
template <typename T>
__device__ unsigned row_in_tile(std::int64_t index, std::size_t first, std::int64_t padding) {
  const std::size_t row = static_cast<std::size_t>(index) - first;  // in front of the tile: wraps to a large number
  return row < kRowsOfTile<T> && index != padding ? static_cast<unsigned>(row) : kRowsOfTile<T>;
}

// A warp's sums for a tile, a feature to each lane; only those of rows that it has `seen` hold anything.
template <typename T>
struct TileSums {
  T (*rows)[kLanes];
  unsigned seen = 0;  // a bit for each row

  __device__ void add(unsigned row, unsigned lane, T x) {
    rows[row][lane] = (seen >> row & 1U) != 0 ? rows[row][lane] + x : x;
    seen |= 1U << row;
  }
};

// Adds the rows of dy whose bits are set in `hits`, in their order. `row`: that of the tile which this lane's position
// looked up; `dy`: the lane's feature of the first position, or null where it has none.
template <typename T>
__device__ void add_hits(TileSums<T>& sums, unsigned hits, unsigned row, const T* dy, std::size_t features) {
  const unsigned lane = threadIdx.x % kLanes;
  while (hits != 0) {
    T x[kAtOnce];
    unsigned rows[kAtOnce];
    int count = 0;
    for (int i = 0; i < kAtOnce; ++i) {  // all are read before one is used
      if (hits == 0) break;
      const unsigned from = static_cast<unsigned>(__ffs(hits)) - 1;
      hits &= hits - 1;
      rows[i] = __shfl_sync(kWholeWarp, row, from);
      x[i] = dy != nullptr ? dy[from * features] : T{0};
      ++count;
    }
    for (int i = 0; i < kAtOnce; ++i) {
      if (i < count) sums.add(rows[i], lane, x[i]);
    }
  }
}

// Sums over a warp's positions: 32, then those behind the other warps' 32, and so on. Gives the rows that it has seen.
template <typename T>
__device__ unsigned sums_of_warp(const Lookup& lookup, std::size_t first, std::size_t feature, const T* dy,
                                 T (*rows)[kLanes]) {
  constexpr std::size_t kTurn = kGroups * kLanes;
  const unsigned lane = threadIdx.x % kLanes, group = threadIdx.x / kLanes;
  const std::int64_t* const indices = lookup.indices + blockIdx.y * lookup.slot_stride;
  const std::size_t of_slot = blockIdx.y * lookup.positions * lookup.features + feature;
  TileSums<T> sums{rows};
  for (std::size_t begin = group * kLanes; begin < lookup.positions; begin += kTurnsAtOnce * kTurn) {
    std::int64_t index[kTurnsAtOnce];
    for (unsigned i = 0; i < kTurnsAtOnce; ++i) {  // all are read before one is looked at
      const std::size_t position = begin + i * kTurn + lane;
      index[i] = position < lookup.positions ? indices[position] : -1;
    }
    for (unsigned i = 0; i < kTurnsAtOnce; ++i) {
      const unsigned row = row_in_tile<T>(index[i], first, lookup.padding);
      const unsigned hits = __ballot_sync(kWholeWarp, row < kRowsOfTile<T>);
      const std::size_t at = of_slot + (begin + i * kTurn) * lookup.features;
      const T* const from = feature < lookup.features ? dy + at : nullptr;
      add_hits(sums, hits, row, from, lookup.features);
    }
  }
  return sums.seen;
}

// x over tiles of rows, y over slots, z over tiles of 32 features. The warps' sums are joined in order.
template <typename T>
__global__ void embedding_tables_kernel(Lookup lookup, const T* dy, T* dtables) {
  __shared__ T sums[kGroups][kRowsOfTile<T>][kLanes];
  __shared__ unsigned seen[kGroups];
  const unsigned lane = threadIdx.x % kLanes, group = threadIdx.x / kLanes;
  const std::size_t first = static_cast<std::size_t>(blockIdx.x) * kRowsOfTile<T>;
  const std::size_t feature = static_cast<std::size_t>(blockIdx.z) * kLanes + lane;
  const unsigned own = sums_of_warp(lookup, first, feature, dy, sums[group]);
  if (lane == 0) seen[group] = own;
  __syncthreads();
  if (feature >= lookup.features) return;
  for (unsigned row = group; row < kRowsOfTile<T> && first + row < lookup.rows; row += kGroups) {
    T sum = 0;
    for (unsigned g = 0; g < kGroups; ++g) {
      if ((seen[g] >> row & 1U) != 0) sum += sums[g][row][lane];
    }
    dtables[(blockIdx.y * lookup.rows + first + row) * lookup.features + feature] = sum;
  }
}

template <typename T>
void forward(const Lookup& lookup, const T* tables, T* y, void* stream) {
  if (lookup.slots == 0 || lookup.positions == 0 || lookup.features == 0) return;
  launch("embedding", embedding_kernel<T>, grid_of_rows(lookup.positions, lookup.slots), stream, lookup, tables, y);
}

template <typename T>
void backward(const Lookup& lookup, const T* dy, T* dtables, void* stream) {
  if (lookup.slots == 0 || lookup.rows == 0 || lookup.features == 0) return;
  const dim3 tiles(static_cast<unsigned>((lookup.rows + kRowsOfTile<T> - 1) / kRowsOfTile<T>),
                   static_cast<unsigned>(lookup.slots), static_cast<unsigned>((lookup.features + kLanes - 1) / kLanes));
  launch("embedding's gradient", embedding_tables_kernel<T>, tiles, stream, lookup, dy, dtables);
}

}  // namespace

void embedding(const Lookup& lookup, const float* tables, float* y, void* stream) {
  forward(lookup, tables, y, stream);
}
void embedding(const Lookup& lookup, const double* tables, double* y, void* stream) {
  forward(lookup, tables, y, stream);
}
void embedding_backward(const Lookup& lookup, const float* dy, float* dtables, void* stream) {
  backward(lookup, dy, dtables, stream);
}
void embedding_backward(const Lookup& lookup, const double* dy, double* dtables, void* stream) {
  backward(lookup, dy, dtables, stream);
}

}  // namespace hfta::fusion::cuda
