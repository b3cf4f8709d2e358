#pragma once
/// Turns a training graph's outputs into gradients and sums over an epoch.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

namespace hfta::fusion {

/// Has autograd fill the gradients of `loss`, [c] or a scalar, each slot's of its own loss, unscaled. Throws
/// Error{kConfig} if nothing trained has a part in it.
void backward(const at::Tensor& loss);

/// Adds to `losses`, [2, c] float64, each slot's loss times the batch's weight, and that weight. `objective`: the loss
/// and, if the graph has one, its weight; without one `samples` is the weight.
void add_loss(at::Tensor& losses, std::span<const at::Tensor> objective, std::int64_t samples);

}  // namespace hfta::fusion
