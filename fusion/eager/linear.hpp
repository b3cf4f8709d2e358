#pragma once
/// Linear layers of each slot's own on a GPU: their biases, and the relu behind them, are added by kernels of our own
/// (fusion/cuda/bias_kernels.hpp); the gradients of small weights are summed over parts of the rows.

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace hfta::fusion {

/// `x` [c, M, in], of a type that kernels_take(), `weight` [c, out, in], `bias` [c, out]: x weight^T + bias, [c, M,
/// out]; max(0, that) with `relu`.
[[nodiscard]] at::Tensor own_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, bool relu);

/// own_linear() without a relu, as weight x^T + bias, whose memory is [c, out, M]. `bias` may be undefined.
[[nodiscard]] at::Tensor own_weight_first_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

/// dy^T x of each slot, [c, out, in], for `dy` [c, M, out] and `x` [c, M, in] of one type. A small weight with many
/// rows keeps few of a GPU's processors busy, as cuBLAS gives all rows of a tile to one block: so parts of the rows are
/// multiplied as if they were slots, and their products summed in order.
[[nodiscard]] at::Tensor weight_gradient(const at::Tensor& dy, const at::Tensor& x);

/// How many parts weight_gradient() makes, all of equally many rows; 1: none. Not by the number of slots, on which a
/// slot's bits must not depend.
[[nodiscard]] std::int64_t weight_gradient_parts(std::int64_t rows, std::int64_t out, std::int64_t in);

}  // namespace hfta::fusion
