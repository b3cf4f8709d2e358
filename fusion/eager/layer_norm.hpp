#pragma once
/// Layer normalisation with a weight and a bias of each slot's own, by kernels of our own
/// (fusion/cuda/norm_kernels.hpp).

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace hfta::fusion {

/// `x` [c, ...], which kernels_take(); of it the last dimensions, `features` numbers, are normalised; `weight` and
/// `bias` [c, ...] of `features` numbers each, or undefined.
[[nodiscard]] at::Tensor own_layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                                        std::int64_t features, double eps);

}  // namespace hfta::fusion
