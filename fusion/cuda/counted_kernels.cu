// Counted randomness, the samples of a batch, and what the host has for a step.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/philox.hpp"
#include "fusion/cuda/launch.cuh"
#include "fusion/cuda/slot_kernels.hpp"

namespace hfta::fusion::cuda {
namespace {

// Calls of(slot, block, words) for every Philox block of this thread's.
template <typename Of>
__device__ void for_blocks(const Draw& draw, std::size_t blocks, Of of) {
  const unsigned slot = blockIdx.y;
  const SlotRandom source = draw.random[slot];
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * kThreads;
  for (std::size_t block = static_cast<std::size_t>(blockIdx.x) * kThreads + threadIdx.x; block < blocks;
       block += stride) {
    std::uint32_t words[4] = {static_cast<std::uint32_t>(block), draw.node, static_cast<std::uint32_t>(source.step),
                              static_cast<std::uint32_t>(source.step >> 32)};
    philox_rounds(words, static_cast<std::uint32_t>(source.key), static_cast<std::uint32_t>(source.key >> 32));
    of(slot, block, words);
  }
}

__host__ __device__ inline std::size_t blocks_of(std::size_t n, std::size_t per_block) {
  return (n + per_block - 1) / per_block;
}

// One thread makes one Philox block: four neighbouring elements.
template <typename T>
__global__ void mask_kernel(T* out, Draw draw, Rates rates) {
  const double p = rates.rates != nullptr ? rates.rates[blockIdx.y] : rates.rate;
  const double keep = p <= 0 ? 1.0 : p >= 1 ? 0.0 : 1.0 - p;
  const T scale = keep > 0 ? static_cast<T>(1.0 / keep) : T{0};
  const auto limit = static_cast<std::uint64_t>(keep * 4294967296.0);
  for_blocks(draw, blocks_of(draw.n, 4), [&](unsigned slot, std::size_t block, const std::uint32_t(&words)[4]) {
    T* row = out + slot * draw.n;
    for (std::size_t j = 0; j < 4 && block * 4 + j < draw.n; ++j) {
      row[block * 4 + j] = words[j] < limit ? scale : T{0};
    }
  });
}

__device__ inline void set_uniform(float& out, std::uint32_t word) { out = static_cast<float>(word >> 8) * 0x1p-24F; }
__device__ inline void set_uniform(double& out, std::uint32_t word) { out = static_cast<double>(word) * 0x1p-32; }

template <typename T>
__global__ void uniform_kernel(T* out, Draw draw) {
  for_blocks(draw, blocks_of(draw.n, 4), [&](unsigned slot, std::size_t block, const std::uint32_t(&words)[4]) {
    T* row = out + slot * draw.n;
    for (std::size_t j = 0; j < 4 && block * 4 + j < draw.n; ++j) set_uniform(row[block * 4 + j], words[j]);
  });
}

// Two words to an element.
template <typename T>
__global__ void normal_kernel(T* out, Draw draw) {
  for_blocks(draw, blocks_of(draw.n, 2), [&](unsigned slot, std::size_t block, const std::uint32_t(&words)[4]) {
    T* row = out + slot * draw.n;
    for (std::size_t j = 0; j < 2 && block * 2 + j < draw.n; ++j) {
      double first = 0, second = 0;
      set_uniform(first, words[2 * j]);
      set_uniform(second, words[2 * j + 1]);
      row[block * 2 + j] = static_cast<T>(normal_of(first, second));
    }
  });
}

// Thread by thread a piece of a row, a Piece long.
template <typename Piece>
__global__ void rows_kernel(Piece* out, std::size_t n, const Piece* all, std::size_t pieces, const std::int64_t* order,
                            const std::int64_t* begin) {
  const std::int64_t from = *begin;
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * kThreads;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * kThreads + threadIdx.x; i < n * pieces; i += stride) {
    const std::int64_t at = from + static_cast<std::int64_t>(i / pieces);
    out[i] = all[static_cast<std::size_t>(order != nullptr ? order[at] : at) * pieces + i % pieces];
  }
}

template <typename Piece>
bool in_pieces(const void* out, const void* all, std::size_t bytes) {
  const auto places = reinterpret_cast<std::uintptr_t>(out) | reinterpret_cast<std::uintptr_t>(all);
  return (places | bytes) % sizeof(Piece) == 0;
}

template <typename Piece>
void launch_rows(void* out, std::size_t n, const void* all, std::size_t bytes, const std::int64_t* order,
                 const std::int64_t* begin, void* stream) {
  const std::size_t pieces = bytes / sizeof(Piece);
  launch("rows of a batch", rows_kernel<Piece>, grid_for(n * pieces, 1), stream, static_cast<Piece*>(out), n,
         static_cast<const Piece*>(all), pieces, order, begin);
}

constexpr std::size_t kStored = 3968;  // bytes that a launch stores: kernel arguments take 4 KiB

struct Stored {
  unsigned char of[kStored];
};

__global__ void store_kernel(const __grid_constant__ Stored from, unsigned char* to, unsigned bytes) {
  for (unsigned i = threadIdx.x; i < bytes; i += kThreads) to[i] = from.of[i];
}

template <typename T>
void launch_masks(T* out, const Draw& draw, const Rates& rates, void* stream) {
  if (draw.n == 0) return;
  launch("dropout masks", mask_kernel<T>, grid_for(blocks_of(draw.n, 4), draw.slots), stream, out, draw, rates);
}

template <typename T>
void launch_uniforms(T* out, const Draw& draw, void* stream) {
  if (draw.n == 0) return;
  launch("uniform numbers", uniform_kernel<T>, grid_for(blocks_of(draw.n, 4), draw.slots), stream, out, draw);
}

template <typename T>
void launch_normals(T* out, const Draw& draw, void* stream) {
  if (draw.n == 0) return;
  launch("normal numbers", normal_kernel<T>, grid_for(blocks_of(draw.n, 2), draw.slots), stream, out, draw);
}

}  // namespace

void dropout_masks(float* out, const Draw& draw, const Rates& rates, void* stream) {
  launch_masks(out, draw, rates, stream);
}
void dropout_masks(double* out, const Draw& draw, const Rates& rates, void* stream) {
  launch_masks(out, draw, rates, stream);
}
void uniforms(float* out, const Draw& draw, void* stream) { launch_uniforms(out, draw, stream); }
void uniforms(double* out, const Draw& draw, void* stream) { launch_uniforms(out, draw, stream); }
void normals(float* out, const Draw& draw, void* stream) { launch_normals(out, draw, stream); }
void normals(double* out, const Draw& draw, void* stream) { launch_normals(out, draw, stream); }

void batch_rows(void* out, std::size_t n, const void* all, std::size_t bytes, const std::int64_t* order,
                const std::int64_t* begin, void* stream) {
  if (n == 0 || bytes == 0) return;
  if (in_pieces<uint4>(out, all, bytes)) return launch_rows<uint4>(out, n, all, bytes, order, begin, stream);
  if (in_pieces<unsigned>(out, all, bytes)) return launch_rows<unsigned>(out, n, all, bytes, order, begin, stream);
  launch_rows<unsigned char>(out, n, all, bytes, order, begin, stream);
}

void store(void* to, const void* from, std::size_t bytes, void* stream) {
  for (std::size_t begin = 0; begin < bytes; begin += kStored) {
    const std::size_t n = std::min(kStored, bytes - begin);
    Stored piece{};
    std::memcpy(piece.of, static_cast<const unsigned char*>(from) + begin, n);
    launch("numbers of a step", store_kernel, dim3(1, 1, 1), stream, piece, static_cast<unsigned char*>(to) + begin,
           static_cast<unsigned>(n));
  }
}

}  // namespace hfta::fusion::cuda
