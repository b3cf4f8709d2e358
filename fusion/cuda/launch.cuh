#pragma once
/// Code that the kernels' files share.

#include <cuda_runtime.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <type_traits>

#include "base/error.hpp"

namespace hfta::fusion::cuda {

constexpr unsigned kThreads = 256;
constexpr std::size_t kMostBlocks = 4096;  // blocks of one slot; they stride over the rest

/// x over `work` threads' worth, y over slots, so that a block reads one slot's numbers.
inline dim3 grid_for(std::size_t work, int slots) {
  const std::size_t blocks = std::max<std::size_t>(1, std::min(kMostBlocks, (work + kThreads - 1) / kThreads));
  return {static_cast<unsigned>(blocks), static_cast<unsigned>(slots), 1};
}

/// Parts of rows that are summed separately: by the rows' number alone, so that a slot's sums do not depend on how many
/// slots there are.
struct Parts {
  std::size_t rows, number;  // rows of a part; number of parts
};
constexpr std::size_t kMostParts = 256;

/// `least`: rows of a part at least, but for the last part.
__host__ __device__ inline Parts parts_of(std::size_t rows, std::size_t least) {
  const std::size_t even = (rows + kMostParts - 1) / kMostParts, of_part = even > least ? even : least;
  return {of_part, (rows + of_part - 1) / of_part};
}

/// Has `kernel` run on `stream` (a cudaStream_t) with kThreads threads a block; `name` is for errors. A call, not
/// <<<>>>: tests compile the kernels for the CPU, where that is no syntax. Throws Error{kMemory} if the launch finds no
/// memory (kernels are loaded when they are first launched), Error{kDevice} if it fails otherwise.
template <typename... Parameters, typename... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), dim3 grid, void* stream, Arguments... arguments) {
  std::tuple<std::remove_const_t<Parameters>...> values(arguments...);
  cudaError_t error = cudaSuccess;
  std::apply(
      [&](auto&... value) {
        void* addresses[] = {&value...};
        error = cudaLaunchKernel(kernel, grid, dim3(kThreads, 1, 1), addresses, 0, static_cast<cudaStream_t>(stream));
      },
      values);
  if (error == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // or LibTorch's next check would find it
  throw Error(error == cudaErrorMemoryAllocation ? ErrorKind::kMemory : ErrorKind::kDevice,
              std::string("CUDA kernel ") + name + ": " + cudaGetErrorString(error));
}

}  // namespace hfta::fusion::cuda
