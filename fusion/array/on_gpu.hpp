#pragma once
/// Tensors handed to the CUDA kernels of fusion/cuda, on torch's current stream.

#include <span>
#include <vector>

#include "fusion/array/optimizer.hpp"
#include "fusion/array/rule.hpp"

namespace hfta::fusion {

/// Whether `t` lies on a GPU that this build has kernels for.
[[nodiscard]] bool has_gpu_kernels(const at::Tensor& t);

/// step() by kernels. Requires has_gpu_kernels(weights); clipping factors (one per slot) are given.
void step_on_gpu(OptimizerKind kind, std::span<ParameterSlots> parameters, std::span<const SlotStep> slots,
                 std::span<const double> clip_factors);

/// Fills mask [slots, ...] with the counted dropout masks of `random` at rates `p`. Requires has_gpu_kernels(mask).
void fill_masks_on_gpu(const at::Tensor& mask, std::span<const double> p, std::span<const SlotRandom> random,
                       std::uint32_t node);

}  // namespace hfta::fusion
