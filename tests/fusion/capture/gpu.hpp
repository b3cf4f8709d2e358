#pragma once
// For tests that compare with a GPU. Their tag is `[gpu]`; without a GPU they pass with a warning.

#include <ATen/core/Tensor.h>

#include "fusion/epochs.hpp"
#include "fusion/samples.hpp"

namespace hfta::fusion::testing {

/// GPUs that were found before any test trained on a CPU, which hides them (cuda_devices()). -1: nobody looked.
[[nodiscard]] int gpus_at_start();

/// Whether there is a GPU, and kernels for it in this build; warns if not.
[[nodiscard]] bool gpu_is_there();

inline at::Device first_gpu() { return {at::kCUDA, 0}; }

/// The same samples in the device's memory.
[[nodiscard]] Batch on_device(Batch batch, const at::Device& device);
[[nodiscard]] DeviceData on_device(DeviceData data, const at::Device& device);

}  // namespace hfta::fusion::testing
