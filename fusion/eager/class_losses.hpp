#pragma once
/// Cross entropy of classes by kernels of our own (fusion/cuda/loss_kernels.hpp), with its gradient: one pass over the
/// logits each way, and the same bits each time, which LibTorch's kernels for positions do not give.

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "fusion/eager/slot_numbers.hpp"

namespace hfta::fusion {

/// Losses by slot, [c], or, if none is reduced, by position, [c, N, ...]. The mean is over the positions that are not
/// ignored, which have a loss of 0. `logits` [c, N, C, ...] that kernels_take(), `targets` [c, N, ...] int64.
[[nodiscard]] at::Tensor class_losses(const at::Tensor& logits, const at::Tensor& targets, std::int64_t ignored,
                                      const SlotNumbers& smoothing, std::int64_t reduction);

}  // namespace hfta::fusion
