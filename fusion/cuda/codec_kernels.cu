// Floats in fewer bytes, as fusion/codec/codec.cpp makes them: all slots in one launch.
//
// A thread block works on a tile of 32 rows (codec_rows.cuh), a warp on four of them. Slots take turns to have a tile
// handed out, so that those in front of a tile in its own slot have mostly ended when it looks back for where its words
// begin. Words are gathered in shared memory, so that they leave and come in order.
#include "fusion/codec/format.hpp"
#include "fusion/cuda/codec_kernels.hpp"
#include "fusion/cuda/codec_rows.cuh"
#include "fusion/cuda/launch.cuh"
#include "fusion/cuda/look_back.cuh"

namespace hfta::fusion::cuda {
namespace {

// The values that a call works on, and the tile of them that a block does.
struct Shape {
  std::size_t n, tiles;  // values and tiles of a slot
  int slots;
};
struct Tile {
  unsigned slot;
  std::size_t index, first;  // among the slot's; its first value
  bool fast;                 // it is whole, and so lies that lanes may move 16 bytes

  __device__ Tile(const Shape& shape, unsigned ticket, const float* x)
      : slot(ticket % static_cast<unsigned>(shape.slots)),
        index(ticket / static_cast<unsigned>(shape.slots)),
        first(index * kTile),
        fast(shape.n - first >= kTile && reinterpret_cast<std::uintptr_t>(x + slot * shape.n) % sizeof(uint4) == 0) {}
};
struct Workspace {
  unsigned* tickets;
  std::uint64_t* states;  // [slots, tiles]
};

__device__ inline unsigned row_of_warp(unsigned r) { return threadIdx.x / kLanes * kWarpRows + r; }
// The lane's first value in row r of the warp's, counted from the tile's first.
__device__ inline std::size_t place(unsigned r) { return row_of_warp(r) * kRow + lane_of_thread() * kEach; }

// Floats are moved as words, for the sake of their bits.
__device__ inline void load(const float* x, const Tile& tile, std::size_t n, Words (&rows)[kWarpRows]) {
  for (unsigned r = 0; r < kWarpRows; ++r) {
    const std::size_t at = tile.first + place(r);
    if (tile.fast) {
      const uint4 four = *reinterpret_cast<const uint4*>(x + at);
      rows[r][0] = four.x;
      rows[r][1] = four.y;
      rows[r][2] = four.z;
      rows[r][3] = four.w;
    } else {
      for (unsigned j = 0; j < kEach; ++j) rows[r][j] = at + j < n ? bits_of(x[at + j]) : 0;
    }
  }
}

__device__ inline void store(float* x, const Tile& tile, std::size_t n, unsigned r, const Words& words) {
  const std::size_t at = tile.first + place(r);
  if (tile.fast) {  // __stwb: nvcc 13.0 makes four stores of an assignment
    __stwb(reinterpret_cast<uint4*>(x + at), uint4{words[0], words[1], words[2], words[3]});
  } else {
    for (unsigned j = 0; j < kEach; ++j) {
      if (at + j < n) x[at + j] = float_of(words[j]);
    }
  }
}

// Words of a slot's bytes, none beyond its stride.
template <typename Word>
struct Region {
  Word* words;
  std::size_t most;

  template <typename Byte>
  __device__ Region(const SlotBytes<Byte>& bytes, unsigned slot)
      : words(reinterpret_cast<Word*>(bytes.bytes + slot * bytes.stride)), most(bytes.stride / codec::kWord) {}
  __device__ void set(std::size_t at, std::uint32_t word) const {
    if (at < most) words[at] = word;
  }
  [[nodiscard]] __device__ std::uint32_t get(std::size_t at) const { return at < most ? words[at] : 0; }
};

__global__ void clear_kernel(std::uint64_t* words, std::size_t n) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * kThreads;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * kThreads + threadIdx.x; i < n; i += stride) words[i] = 0;
}

__global__ void encode_kernel(const float* values, Shape shape, const float* bounds, SlotBytes<unsigned char> out,
                              std::uint64_t* sizes, Workspace workspace) {
  __shared__ unsigned char widths[kRows][kRowBlocks];
  __shared__ std::uint32_t words[kTile];
  __shared__ std::uint64_t words_before;
  const Tile tile(shape, next_ticket(workspace.tickets), values);
  const codec::Quantiser by = codec::quantiser(bounds[tile.slot]);
  Words rows[kWarpRows];
  load(values + tile.slot * shape.n, tile, shape.n, rows);
  const std::size_t rest = shape.n - tile.first;
  for (unsigned r = 0; r < kWarpRows; ++r) {
    const unsigned row = row_of_warp(r), begin = row * kRow;
    const unsigned width = begin < rest ? encode_row(rows[r], by, rest - begin) : 0;
    if (lane_of_thread() % kBlockLanes == 0) {
      widths[row][lane_of_thread() / kBlockLanes] = static_cast<unsigned char>(width);
    }
  }
  __syncthreads();

  std::uint32_t row_widths = 0;
  std::memcpy(&row_widths, widths[lane_of_thread()], sizeof row_widths);
  const Offsets offsets(row_widths);
  std::uint64_t* const states = workspace.states + tile.slot * shape.tiles;
  if (threadIdx.x == 0) say_part(states, tile.index, offsets.total);
  for (unsigned r = 0; r < kWarpRows; ++r) {
    const Offsets::Part part = offsets.part(row_of_warp(r));
    for (unsigned j = 0; j < kEach; ++j) {
      if (j < part.count) words[part.at + j] = rows[r][j];
    }
  }
  if (threadIdx.x < kLanes) {
    const std::uint64_t before = look_back(states, tile.index, offsets.total);
    if (threadIdx.x == 0) words_before = before;
  }
  __syncthreads();

  const Region<std::uint32_t> region(out, tile.slot);
  const std::size_t header = codec::kHeaderWords + codec::width_words(shape.n), first = header + words_before;
  for (unsigned i = threadIdx.x; i < offsets.total; i += kThreads) region.set(first + i, words[i]);
  const std::size_t widths_at = codec::kHeaderWords + tile.index * kRows + threadIdx.x;
  if (threadIdx.x < kRows && widths_at < header) region.set(widths_at, row_widths);
  if (threadIdx.x == 0 && tile.index == 0) region.set(0, bits_of(by.step));
  if (threadIdx.x == 0 && tile.index + 1 == shape.tiles) sizes[tile.slot] = (first + offsets.total) * codec::kWord;
}

// Brings a tile's words into shared memory, a few loads at a time under way.
__device__ inline void gather(const Region<const std::uint32_t>& region, std::size_t first, unsigned count,
                              std::uint32_t* words) {
  constexpr unsigned kAtOnce = 4;
  for (unsigned begin = threadIdx.x; begin < count; begin += kAtOnce * kThreads) {
    std::uint32_t some[kAtOnce];
    for (unsigned k = 0; k < kAtOnce; ++k) {
      const unsigned i = begin + k * kThreads;
      some[k] = i < count ? region.get(first + i) : 0;
    }
    for (unsigned k = 0; k < kAtOnce; ++k) {
      const unsigned i = begin + k * kThreads;
      if (i < count) words[i] = some[k];
    }
  }
}

__global__ void decode_kernel(SlotBytes<const unsigned char> bytes, float* values, Shape shape, Workspace workspace) {
  __shared__ std::uint32_t words[kTile];
  __shared__ std::uint64_t words_before;
  const Tile tile(shape, next_ticket(workspace.tickets), values);
  const Region<const std::uint32_t> region(bytes, tile.slot);
  const std::size_t header = codec::kHeaderWords + codec::width_words(shape.n);
  const std::size_t widths_at = codec::kHeaderWords + tile.index * kRows + lane_of_thread();
  const float step = float_of(region.get(0));
  const Offsets offsets(at_most_32(widths_at < header ? region.get(widths_at) : 0));
  if (threadIdx.x < kLanes) {
    std::uint64_t* const states = workspace.states + tile.slot * shape.tiles;
    if (threadIdx.x == 0) say_part(states, tile.index, offsets.total);
    const std::uint64_t before = look_back(states, tile.index, offsets.total);
    if (threadIdx.x == 0) words_before = before;
  }
  __syncthreads();
  gather(region, header + words_before, offsets.total, words);
  __syncthreads();

  const std::size_t rest = shape.n - tile.first;
  for (unsigned r = 0; r < kWarpRows; ++r) {
    const unsigned row = row_of_warp(r);
    if (row * kRow >= rest) break;
    const Offsets::Part part = offsets.part(row);
    Words found, codes;
    for (unsigned j = 0; j < kEach; ++j) codes[j] = found[j] = j < part.count ? words[part.at + j] : 0;
    transpose(codes);
    const bool as_it_is = part.count + lane_of_thread() % kBlockLanes * kEach == codec::kAsItIs;
    for (unsigned j = 0; j < kEach; ++j) found[j] = as_it_is ? found[j] : value_of(codes[j], step);
    store(values + tile.slot * shape.n, tile, shape.n, r, found);
  }
}

// At least one: it writes what a slot without values has.
std::size_t tiles_of(std::size_t n) { return n == 0 ? 1 : (n + kTile - 1) / kTile; }

// Has every tile worked on by a block, with the workspace as it has to be.
template <typename Call>
void for_tiles(std::size_t n, int slots, std::uint64_t* workspace, void* stream, Call call) {
  if (slots == 0) return;
  const Shape shape{n, tiles_of(n), slots};
  const std::size_t words = codec_workspace(n, slots);
  launch("codec's workspace", clear_kernel, grid_for(words, 1), stream, workspace, words);
  const auto blocks = static_cast<unsigned>(shape.tiles * static_cast<std::size_t>(slots));
  call(shape, dim3(blocks, 1, 1), Workspace{reinterpret_cast<unsigned*>(workspace), workspace + 1});
}

}  // namespace

std::size_t codec_workspace(std::size_t n, int slots) { return 1 + tiles_of(n) * static_cast<std::size_t>(slots); }

void encode_slots(const SlotValues<const float>& values, const float* bounds, const SlotBytes<unsigned char>& out,
                  std::uint64_t* sizes, std::uint64_t* workspace, void* stream) {
  for_tiles(values.n, values.slots, workspace, stream, [&](const Shape& shape, dim3 grid, const Workspace& space) {
    launch("encoding", encode_kernel, grid, stream, values.x, shape, bounds, out, sizes, space);
  });
}

void decode_slots(const SlotBytes<const unsigned char>& bytes, const SlotValues<float>& values,
                  std::uint64_t* workspace, void* stream) {
  for_tiles(values.n, values.slots, workspace, stream, [&](const Shape& shape, dim3 grid, const Workspace& space) {
    launch("decoding", decode_kernel, grid, stream, bytes, values.x, shape, space);
  });
}

}  // namespace hfta::fusion::cuda
