#pragma once
/// Cross entropy of classes by kernels of our own (fusion/cuda/loss_kernels.hpp), with its gradient: one pass over the
/// logits each way, and the same bits each time, which LibTorch's kernels for positions do not give.

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "fusion/eager/slot_numbers.hpp"

namespace hfta::fusion {

/// By position, [c, ...].
struct ClassLosses {
  at::Tensor loss;     ///< 0 where the position is ignored.
  at::Tensor counted;  ///< 1, or 0 where the position is ignored.
};

/// `logits` [c, N, C, ...] that kernels_take(), `targets` [c, N, ...] int64.
[[nodiscard]] ClassLosses class_losses(const at::Tensor& logits, const at::Tensor& targets, std::int64_t ignored,
                                       const SlotNumbers& smoothing);

}  // namespace hfta::fusion
