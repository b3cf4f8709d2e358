#pragma once
/// Parts of LibTorch that are loaded only on machines with a GPU: its CUDA side, and on top of it CUDA graphs as a
/// StepGraphBackend.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "fusion/step_graph.hpp"

namespace hfta::fusion {

/// GPUs that LibTorch can use. Loads libtorch_cuda, which costs hundreds of megabytes, if a driver is installed; it
/// stays loaded until the process ends. Call it before anything is trained, also on a CPU: LibTorch looks for GPUs
/// once, at its first backward, and sees none later.
[[nodiscard]] int cuda_devices();

/// Bytes of the device's memory; for a CPU, usable_memory(). REQUIRES for a GPU that cuda_devices() was called.
[[nodiscard]] std::int64_t device_memory(const at::Device& device);

struct CudaGraphs {
  std::shared_ptr<StepGraphBackend> backend = {};  ///< Null where there is none.
  std::string why_none = {};                       ///< The reason for null; "" if no backend is wanted (a CPU).
};

/// The backend for arrays on that device. It is a separate module, libhfta_cuda_graphs.so, which is searched for beside
/// the binary that contains this function, in ../lib, and in the loader's path. Calls cuda_devices() for a GPU.
[[nodiscard]] CudaGraphs cuda_graphs(const at::Device& device);

}  // namespace hfta::fusion
