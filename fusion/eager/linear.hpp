#pragma once
/// A linear layer of each slot's own, whose bias, and the relu behind it, kernels of our own add
/// (fusion/cuda/bias_kernels.hpp).

#include <ATen/core/Tensor.h>

namespace hfta::fusion {

/// `x` [c, M, in], of a type that kernels_take(), `weight` [c, out, in], `bias` [c, out]: x weight^T + bias, [c, M,
/// out]; max(0, that) with `relu`.
[[nodiscard]] at::Tensor own_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, bool relu);

}  // namespace hfta::fusion
