#pragma once
/// Optimizers over many slots: one rule (fusion/optimizers/rules), every number a vector over slots.

#include <ATen/core/Tensor.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "fusion/optimizers/slot_step.hpp"

namespace hfta::fusion {

/// One parameter of c slots: weight and gradient [c, ...], and the optimizer's state of the same shape. All contiguous.
struct ParameterSlots {
  at::Tensor weight, gradient;
  std::array<at::Tensor, kMostStates> states;  ///< In OptimizerInfo::states' order; undefined where there are fewer.
  std::size_t group = 0;                       ///< Its parameter group, which selects the slot's numbers.
  at::Tensor accumulated;                      ///< SlotStore::gradient; undefined where batches are not accumulated.
};

/// One slot's row of a parameter on a CPU; null for tensors that are undefined.
template <typename T>
[[nodiscard]] SlotRow<T> row_of(const ParameterSlots& p, std::size_t slot) {
  const std::int64_t n = p.weight.numel() / p.weight.size(0);
  const std::int64_t at = static_cast<std::int64_t>(slot) * n;
  const auto row = [&](const at::Tensor& t) { return t.defined() ? t.data_ptr<T>() + at : nullptr; };
  SlotRow<T> out{row(p.weight), row(p.gradient), {}, static_cast<std::size_t>(n), p.group};
  for (std::size_t s = 0; s < p.states.size(); ++s) out.states[s] = row(p.states[s]);
  return out;
}

/// One step of every slot that updates, in place. `slots`: [c, groups] row-major, a slot's numbers by group. Clipping
/// is by the slot's own norm over all its parameters (torch.nn.utils.clip_grad_norm_). Bias corrections are computed in
/// double. On a CPU one pass over memory per slot; otherwise as step_reference. StepKernels::step is the same for
/// numbers that lie on the device.
void step(OptimizerKind kind, std::span<ParameterSlots> parameters, std::span<const SlotStep> slots);

/// Clamps slot b's weights to [-limits[b], limits[b]]; `limits`: [c] float64 on the device, infinite for none.
void clamp_weights(std::span<const ParameterSlots> parameters, const at::Tensor& limits);

/// step() in tensor operations, on any device: what the fast form is judged by.
void step_reference(OptimizerKind kind, std::span<ParameterSlots> parameters, std::span<const SlotStep> slots);

}  // namespace hfta::fusion
