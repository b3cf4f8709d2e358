#pragma once
/// Code that attention's kernels share. A thread has two rows of one head, of queries or of keys, or a part of their
/// features; rows of the other side come by in tiles in shared memory, and all threads of a head read the same one at a
/// time. What a thread reads from there serves both of its rows: shared memory is what bounds these kernels.

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "fusion/cuda/attention_kernels.hpp"
#include "fusion/cuda/warps.cuh"

namespace hfta::fusion::cuda {

constexpr unsigned kQuad = 4;  // numbers that are read at once
constexpr int kOwn = 2;        // rows of a thread

/// Numbers of a tile, of all heads of a block.
template <typename T>
constexpr unsigned kTile = 16384 / sizeof(T);
/// Rows of a tile whose scores are made at a time; tiles have whole chunks.
template <typename T>
constexpr unsigned kChunk = 32 / sizeof(T);

template <typename T>
struct alignas(16) Quad {
  T of[kQuad];
};

/// How a block divides its work. It follows from lengths and features, not from the number of heads.
struct AttentionPlan {
  unsigned lane_bits;  // 2^lane_bits lanes share a row, each with kWidth of its features
  unsigned pairs;      // pairs of a head's rows that a block has
  unsigned together;   // heads of a block
  unsigned tile;       // rows of the other side that a tile has of each head
};

/// `own`, `other`: rows of a head on the two sides.
template <typename T, unsigned kWidth>
AttentionPlan plan_of(const AttentionShape& shape, unsigned own, unsigned other) {
  const unsigned features = std::max(shape.key_features, shape.value_features);
  unsigned lane_bits = 0;
  while (kWidth << lane_bits < features) ++lane_bits;
  const unsigned row = kWidth << lane_bits, pairs = std::min((own + kOwn - 1) / kOwn, kThreads >> lane_bits);
  const unsigned together = std::min(kThreads / (pairs << lane_bits), kTile<T> / (row * kChunk<T>));
  const unsigned fit = kTile<T> / (row * together) / kChunk<T> * kChunk<T>,
                 chunks = (other + kChunk<T> - 1) / kChunk<T>;
  return {lane_bits, pairs, together, std::min(fit, chunks * kChunk<T>)};
}

/// x over heads, y over a head's rows.
inline dim3 grid_of(const AttentionShape& shape, const AttentionPlan& plan, unsigned own) {
  const unsigned heads = shape.slots * shape.samples * shape.heads, rows = plan.pairs * kOwn;
  return {(heads + plan.together - 1) / plan.together, (own + rows - 1) / rows, 1};
}

/// Rows with what a kernel has to know to read them.
template <typename T>
struct Side {
  AttentionRows<T> rows;
  unsigned features;
  bool in_quads;  // they can be read and written four at a time

  Side(const AttentionRows<T>& all, unsigned features_of_row) : rows(all), features(features_of_row) {
    const auto whole = [](std::int64_t stride) { return stride * static_cast<std::int64_t>(sizeof(T)) % 16 == 0; };
    in_quads = reinterpret_cast<std::uintptr_t>(all.data) % 16 == 0 && features % kQuad == 0 && whole(all.slot) &&
               whole(all.sample) && whole(all.head) && whole(all.row);
  }
};

/// A thread's place. The threads of one head, a team, also read its tiles.
struct AttentionPlace {
  unsigned head, team, member, row;
  unsigned part, lane_bits;  // the lane's part of a row; AttentionPlan::lane_bits
  unsigned in_block;         // position of the head among the block's
  bool is_any;               // else there is no work for this thread

  __device__ AttentionPlace(const AttentionShape& shape, const AttentionPlan& plan)
      : team(plan.pairs << plan.lane_bits), lane_bits(plan.lane_bits) {
    in_block = threadIdx.x / team;
    member = threadIdx.x - in_block * team;
    head = blockIdx.x * plan.together + in_block;
    part = member & ((1U << lane_bits) - 1);
    row = (blockIdx.y * plan.pairs + (member >> lane_bits)) * kOwn;
    is_any = in_block < plan.together && head < shape.slots * shape.samples * shape.heads;
    if (!is_any) in_block = 0;
  }

  /// The first row of the head.
  template <typename T>
  [[nodiscard]] __device__ T* begin_of(const AttentionShape& shape, const Side<T>& side) const {
    const AttentionRows<T>& rows = side.rows;
    const unsigned of_slot = head / shape.heads;
    return rows.data + of_slot / shape.samples * rows.slot + of_slot % shape.samples * rows.sample +
           head % shape.heads * rows.head;
  }
  /// Index of the thread's i-th row in an array with one number for each row of each head.
  [[nodiscard]] __device__ std::size_t place_of(unsigned i, unsigned rows) const {
    return static_cast<std::size_t>(head) * rows + row + i;
  }
};

/// Four features of a row; zeros where there are none. `kInQuads`: Side::in_quads, tested by the caller once for many
/// reads: a test in between would wait for the number read before it.
template <bool kInQuads, typename T>
__device__ Quad<T> read_quad(const Side<const T>& side, const T* row, unsigned feature) {
  Quad<T> quad{};
  if (kInQuads) {
    if (feature < side.features) quad = *reinterpret_cast<const Quad<T>*>(row + feature);
  } else {
    for (unsigned i = 0; i < kQuad; ++i) {
      if (feature + i < side.features) quad.of[i] = row[feature + i];
    }
  }
  return quad;
}

template <typename T>
__device__ void write_quad(const Side<T>& side, T* row, unsigned feature, const Quad<T>& quad) {
  if (side.in_quads && feature < side.features) {
    *reinterpret_cast<Quad<T>*>(row + feature) = quad;
    return;
  }
  for (unsigned i = 0; i < kQuad; ++i) {
    if (feature + i < side.features) row[feature + i] = quad.of[i];
  }
}

/// A lane's part of a row: quads part, part + lanes, ..., so that lanes side by side read numbers side by side.
/// Products are summed up by fma, which is twice as fast: nothing here has to equal a loop of the CPU's.
template <typename T, unsigned kWidth>
struct Features {
  static constexpr unsigned kQuads = kWidth / kQuad;
  Quad<T> quads[kQuads];

  __device__ void fill(T with) {
    for (auto& quad : quads) {
      for (T& x : quad.of) x = with;
    }
  }
  __device__ void multiply(T by) {
    for (auto& quad : quads) {
      for (T& x : quad.of) x *= by;
    }
  }
  /// this += by * other
  __device__ void add(T by, const Features& other) {
    for (unsigned c = 0; c < kQuads; ++c) {
      for (unsigned i = 0; i < kQuad; ++i) quads[c].of[i] = std::fma(by, other.quads[c].of[i], quads[c].of[i]);
    }
  }
  [[nodiscard]] __device__ T times(const Features& other) const {
    T sum = 0;
    for (unsigned c = 0; c < kQuads; ++c) {
      for (unsigned i = 0; i < kQuad; ++i) sum = std::fma(quads[c].of[i], other.quads[c].of[i], sum);
    }
    return sum;
  }
  __device__ void read_tile(const Quad<T>* row, const AttentionPlace& at) {
    for (unsigned c = 0; c < kQuads; ++c) quads[c] = row[(c << at.lane_bits) + at.part];
  }
  template <bool kInQuads>
  __device__ void read(const Side<const T>& side, const T* row, const AttentionPlace& at) {
    for (unsigned c = 0; c < kQuads; ++c) {
      quads[c] = read_quad<kInQuads>(side, row, ((c << at.lane_bits) + at.part) * kQuad);
    }
  }
  __device__ void write(const Side<T>& side, T* row, const AttentionPlace& at) const {
    for (unsigned c = 0; c < kQuads; ++c) write_quad(side, row, ((c << at.lane_bits) + at.part) * kQuad, quads[c]);
  }
};

/// A thread's rows of one tensor.
template <typename T, unsigned kWidth>
struct OwnRows {
  Features<T, kWidth> of[kOwn];

  __device__ void fill(T with) {
    for (auto& row : of) row.fill(with);
  }
  /// `rows`: of the head; zeros behind the last.
  __device__ void read(const AttentionShape& shape, const Side<const T>& side, unsigned rows,
                       const AttentionPlace& at) {
    fill(0);
    if (at.is_any && side.in_quads) read<true>(at.begin_of(shape, side), side, rows, at);
    if (at.is_any && !side.in_quads) read<false>(at.begin_of(shape, side), side, rows, at);
  }
  __device__ void write(const AttentionShape& shape, const Side<T>& side, unsigned rows,
                        const AttentionPlace& at) const {
    if (!at.is_any) return;
    T* const begin = at.begin_of(shape, side);
    for (unsigned r = 0; r < kOwn; ++r) {
      if (at.row + r < rows) of[r].write(side, begin + (at.row + r) * side.rows.row, at);
    }
  }

 private:
  template <bool kInQuads>
  __device__ void read(const T* begin, const Side<const T>& side, unsigned rows, const AttentionPlace& at) {
    for (unsigned r = 0; r < kOwn; ++r) {
      if (at.row + r < rows) of[r].template read<kInQuads>(side, begin + (at.row + r) * side.rows.row, at);
    }
  }
};

/// Sums over the lanes of a row, in one order; all of them get the result. All lanes of the warp must call it.
template <typename T, unsigned kCount>
__device__ void over_parts(T (&values)[kOwn][kCount], unsigned lane_bits) {
  for (unsigned by = 1; by < 1U << lane_bits; by *= 2) {
    for (auto& row : values) {
      for (T& value : row) value += __shfl_xor_sync(kWholeWarp, value, by);
    }
  }
}

/// Two tensors' tiles, of all heads of a block.
template <typename T, unsigned kWidth>
struct Tiles {
  static constexpr unsigned kQuads = kWidth / kQuad, kAtOnce = 4;  // quads of a lane; reads of a thread at a time
  Quad<T> (&to)[2][kTile<T> / kQuad];
  const AttentionShape& shape;
  const AttentionPlan& plan;
  const AttentionPlace& at;

  /// Row j of the thread's head.
  [[nodiscard]] __device__ const Quad<T>* row(unsigned which, unsigned j) const {
    return to[which] + (at.in_block * plan.tile + j) * (kQuads << plan.lane_bits);
  }
  /// Reads rows first, first + 1, ... of the `rows` there are; zeros behind them. The whole block must call it.
  __device__ void read(const Side<const T>& a, const Side<const T>& b, unsigned first, unsigned rows) const {
    __syncthreads();  // nobody reads the last ones any more
    if (at.is_any && a.in_quads && b.in_quads) copy<true>(a, b, first, rows);
    if (at.is_any && !(a.in_quads && b.in_quads)) copy<false>(a, b, first, rows);
    __syncthreads();
  }

 private:
  template <bool kInQuads>
  __device__ void copy(const Side<const T>& a, const Side<const T>& b, unsigned first, unsigned rows) const {
    const unsigned quads = kQuads << plan.lane_bits, all = plan.tile * quads, begin = at.in_block * all;
    const T *const of_a = at.begin_of(shape, a), *const of_b = at.begin_of(shape, b);
    for (unsigned q = at.member; q < all; q += at.team * kAtOnce) {
      Quad<T> read[2][kAtOnce];
      for (unsigned i = 0; i < kAtOnce; ++i) {
        const unsigned n = q + i * at.team, j = first + (n / kQuads >> plan.lane_bits);
        const unsigned feature = (n & (quads - 1)) * kQuad;
        read[0][i] = read[1][i] = Quad<T>{};
        if (n >= all || j >= rows) continue;
        read[0][i] = read_quad<kInQuads>(a, of_a + j * a.rows.row, feature);
        read[1][i] = read_quad<kInQuads>(b, of_b + j * b.rows.row, feature);
      }
      for (unsigned i = 0; i < kAtOnce; ++i) {
        const unsigned n = q + i * at.team;
        if (n < all) to[0][begin + n] = read[0][i], to[1][begin + n] = read[1][i];
      }
    }
  }
};

}  // namespace hfta::fusion::cuda
