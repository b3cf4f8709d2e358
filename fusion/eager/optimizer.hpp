#pragma once
/// Optimizers over many slots: one rule, every number a vector over slots. Update rules of torch.optim 2.11.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "fusion/optimizers/slot_step.hpp"
#include "fusion/recipe.hpp"

namespace hfta::fusion {

/// One parameter of c slots: weight and gradient [c, ...], and the optimizer's state of the same shape. All contiguous.
struct ParameterSlots {
  at::Tensor weight, gradient;
  at::Tensor first, second;  ///< sgd: momentum buffer, none; adam, adamw: exp_avg, exp_avg_sq.
};

/// One slot's row of a parameter on a CPU; of what is undefined null.
template <typename T>
[[nodiscard]] SlotRow<T> row_of(const ParameterSlots& p, std::size_t slot) {
  const std::int64_t n = p.weight.numel() / p.weight.size(0);
  const std::int64_t at = static_cast<std::int64_t>(slot) * n;
  const auto row = [&](const at::Tensor& t) { return t.defined() ? t.data_ptr<T>() + at : nullptr; };
  return {row(p.weight), row(p.gradient), row(p.first), row(p.second), static_cast<std::size_t>(n)};
}

/// One step of every occupied slot, in place. Clipping is by the slot's own norm over all its parameters
/// (torch.nn.utils.clip_grad_norm_). Bias corrections are computed in double. On a CPU one pass over memory per slot;
/// otherwise as step_reference. StepKernels::step is the same for numbers that lie on the device.
void step(OptimizerKind kind, std::span<ParameterSlots> parameters, std::span<const SlotStep> slots);

/// The same in tensor operations, on any device: what the fast form is judged by.
void step_reference(OptimizerKind kind, std::span<ParameterSlots> parameters, std::span<const SlotStep> slots);

}  // namespace hfta::fusion
