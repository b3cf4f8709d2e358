#pragma once
/// Batch normalisation with statistics of each slot's own, by kernels of our own (fusion/cuda/batch_norm_kernels.hpp).

#include <ATen/core/Tensor.h>

namespace hfta::fusion {

/// Arguments of a batch norm of c slots.
struct OwnBatchNorm {
  at::Tensor weight, bias;                    ///< [c, C], or undefined
  at::Tensor running_mean, running_variance;  ///< [c, C], or undefined; moved in place where `training`
  bool training = true;                       ///< Statistics of the samples; else the running ones.
  double momentum = 0.1, eps = 1e-5;
  bool relu = false;  ///< max(0, normalised)
};

/// Whether the kernels read `x` [c, N, C, ...] as it lies: channels side by side, and samples and pixels at one
/// distance from each other.
[[nodiscard]] bool batch_norm_reads(const at::Tensor& x, const OwnBatchNorm& norm);

/// `x`, of a type that kernels_take(), where batch_norm_reads() it. The result is laid out as x.
[[nodiscard]] at::Tensor own_batch_norm(const at::Tensor& x, const OwnBatchNorm& norm);

}  // namespace hfta::fusion
