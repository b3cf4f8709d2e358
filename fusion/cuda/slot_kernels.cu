#include <cuda_runtime.h>

#include <algorithm>
#include <string>

#include "base/error.hpp"
#include "base/philox.hpp"
#include "fusion/cuda/slot_kernels.hpp"

namespace hfta::fusion::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr std::size_t kMostBlocks = 4096;  // of one slot; the rest by striding

// Grid: x over elements, y over slots, so that a block reads one slot's numbers.
template <typename T>
__global__ void sgd_kernel(SlotRows<T> rows, const SgdNumbers<T>* numbers, const unsigned char* occupied) {
  const int slot = static_cast<int>(blockIdx.y);
  if (occupied[slot] == 0) return;
  const SgdNumbers<T> k = numbers[slot];
  const std::size_t base = slot * rows.n;
  for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < rows.n; i += gridDim.x * blockDim.x) {
    if (k.momentum == T{0}) {
      plain_sgd_element(rows.weight[base + i], rows.gradient[base + i], k);
    } else {
      sgd_element(rows.weight[base + i], rows.gradient[base + i], rows.first[base + i], k);
    }
  }
}

template <typename T>
__global__ void adam_kernel(SlotRows<T> rows, const AdamNumbers<T>* numbers, const unsigned char* occupied) {
  const int slot = static_cast<int>(blockIdx.y);
  if (occupied[slot] == 0) return;
  const AdamNumbers<T> k = numbers[slot];
  const std::size_t base = slot * rows.n;
  for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < rows.n; i += gridDim.x * blockDim.x) {
    adam_element(rows.weight[base + i], rows.gradient[base + i], rows.first[base + i], rows.second[base + i], k);
  }
}

// One thread makes one Philox block: four neighbouring elements.
template <typename T>
__global__ void mask_kernel(T* out, std::size_t n, const MaskSource* sources, std::uint32_t node) {
  const int slot = static_cast<int>(blockIdx.y);
  const MaskSource source = sources[slot];
  const T scale = source.keep > 0 ? static_cast<T>(1.0 / source.keep) : T{0};
  const auto limit = static_cast<std::uint64_t>(source.keep * 4294967296.0);
  T* row = out + slot * n;
  for (std::size_t block = blockIdx.x * blockDim.x + threadIdx.x; block * 4 < n; block += gridDim.x * blockDim.x) {
    std::uint32_t counter[4] = {static_cast<std::uint32_t>(block), node, static_cast<std::uint32_t>(source.step),
                                static_cast<std::uint32_t>(source.step >> 32)};
    philox_rounds(counter, static_cast<std::uint32_t>(source.key), static_cast<std::uint32_t>(source.key >> 32));
    for (std::size_t j = 0; j < 4 && block * 4 + j < n; ++j) row[block * 4 + j] = counter[j] < limit ? scale : T{0};
  }
}

dim3 grid_for(std::size_t work, int slots) {
  const std::size_t blocks = std::max<std::size_t>(1, std::min(kMostBlocks, (work + kThreads - 1) / kThreads));
  return {static_cast<unsigned>(blocks), static_cast<unsigned>(slots), 1};
}

void check_launch(const char* kernel) {
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return;
  throw Error(ErrorKind::kDevice, std::string("CUDA kernel ") + kernel + ": " + cudaGetErrorString(error));
}

template <typename T>
void launch_sgd(const SlotRows<T>& rows, const SgdNumbers<T>* numbers, const unsigned char* occupied, void* stream) {
  sgd_kernel<<<grid_for(rows.n, rows.slots), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(rows, numbers, occupied);
  check_launch("sgd");
}

template <typename T>
void launch_adam(const SlotRows<T>& rows, const AdamNumbers<T>* numbers, const unsigned char* occupied, void* stream) {
  adam_kernel<<<grid_for(rows.n, rows.slots), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(rows, numbers,
                                                                                                occupied);
  check_launch("adam");
}

template <typename T>
void launch_masks(T* out, std::size_t n, int slots, const MaskSource* sources, std::uint32_t node, void* stream) {
  mask_kernel<<<grid_for((n + 3) / 4, slots), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(out, n, sources, node);
  check_launch("dropout masks");
}

}  // namespace

bool built() { return true; }

void sgd(const SlotRows<float>& rows, const SgdNumbers<float>* numbers, const unsigned char* occupied, void* stream) {
  launch_sgd(rows, numbers, occupied, stream);
}
void sgd(const SlotRows<double>& rows, const SgdNumbers<double>* numbers, const unsigned char* occupied, void* stream) {
  launch_sgd(rows, numbers, occupied, stream);
}
void adam(const SlotRows<float>& rows, const AdamNumbers<float>* numbers, const unsigned char* occupied, void* stream) {
  launch_adam(rows, numbers, occupied, stream);
}
void adam(const SlotRows<double>& rows, const AdamNumbers<double>* numbers, const unsigned char* occupied,
          void* stream) {
  launch_adam(rows, numbers, occupied, stream);
}
void dropout_masks(float* out, std::size_t n, int slots, const MaskSource* sources, std::uint32_t node, void* stream) {
  launch_masks(out, n, slots, sources, node, stream);
}
void dropout_masks(double* out, std::size_t n, int slots, const MaskSource* sources, std::uint32_t node, void* stream) {
  launch_masks(out, n, slots, sources, node, stream);
}

}  // namespace hfta::fusion::cuda
