#pragma once
/// What the kernels' files share.

#include <cuda_runtime.h>

#include <algorithm>
#include <string>

#include "base/error.hpp"

namespace hfta::fusion::cuda {

constexpr unsigned kThreads = 256;
constexpr std::size_t kMostBlocks = 4096;  // of one slot; the rest by striding

/// x over `work` threads' worth, y over slots, so that a block reads one slot's numbers.
inline dim3 grid_for(std::size_t work, int slots) {
  const std::size_t blocks = std::max<std::size_t>(1, std::min(kMostBlocks, (work + kThreads - 1) / kThreads));
  return {static_cast<unsigned>(blocks), static_cast<unsigned>(slots), 1};
}

inline void check_launch(const char* kernel) {
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return;
  throw Error(ErrorKind::kDevice, std::string("CUDA kernel ") + kernel + ": " + cudaGetErrorString(error));
}

}  // namespace hfta::fusion::cuda
