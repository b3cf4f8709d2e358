#pragma once
/// Optimizer steps by the gradients of several batches (SlotHyper::accumulate).

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "fusion/eager/optimizer.hpp"

namespace hfta::fusion {

/// Adds a batch's gradients to ParameterSlots::accumulated, and its weights to `total`, [c] float64. `objective`: the
/// loss and, if it has one, its weight, as a step gives them; without one a batch weighs its number of samples. A slot
/// whose batch weighs nothing (all of its labels ignored) adds nothing, whatever its gradient is.
void accumulate(std::span<ParameterSlots> parameters, const at::Tensor& total, std::span<const at::Tensor> objective,
                std::int64_t samples);

/// Gradients become those of all batches added: accumulated / total.
void take_means(std::span<ParameterSlots> parameters, const at::Tensor& total);

/// Zeros the sums of the slots in `updated`, [c] bool.
void begin_anew(std::span<const ParameterSlots> parameters, const at::Tensor& total, const at::Tensor& updated);

}  // namespace hfta::fusion
