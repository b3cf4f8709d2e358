#pragma once
/// Parts of LibTorch that are loaded only on machines with a GPU: its CUDA side, and on top of it CUDA graphs as a
/// StepGraphBackend.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "fusion/step_graph.hpp"

namespace hfta::fusion {

/// GPUs that LibTorch can use. Loads libtorch_cuda, which costs hundreds of megabytes, if the driver is there; it stays
/// loaded until the process ends. Call it before anything is trained, on a CPU too: LibTorch looks for GPUs once, at
/// its first backward, and sees none later.
[[nodiscard]] int cuda_devices();

/// Bytes that the device has; of a CPU the machine's. For a GPU cuda_devices() was called.
[[nodiscard]] std::int64_t device_memory(const at::Device& device);

struct CudaGraphs {
  std::shared_ptr<StepGraphBackend> backend;  ///< Null where there is none.
  std::string why_none;                       ///< Then why; "" where none is wanted (a CPU).
};

/// For arrays on that device. They are a module of their own, libhfta_cuda_graphs.so, which is looked for beside the
/// binary that this function is in, in ../lib, and where the loader looks. Calls cuda_devices() for a GPU.
[[nodiscard]] CudaGraphs cuda_graphs(const at::Device& device);

}  // namespace hfta::fusion
