#pragma once
/// Batch normalisation (Ioffe and Szegedy, 2015) of c slots with statistics of each slot's own, with the relu behind it
/// where one follows, and its gradients. Without torch; C++17.
///
/// Calls are as in slot_kernels.hpp: asynchronous on `stream`, with device pointers, fit for a CUDA graph; not in a
/// build without nvcc. Sums over rows are made in parts, whose number follows from the rows alone: a slot's bits do not
/// depend on how many slots there are.

#include <cstddef>

namespace hfta::fusion::cuda {

/// Number f of row r of slot b is x[b * slot_stride + r * row_stride + f]: [c, N, C] as it is, [N, c*C], and images
/// whose channels lie side by side, in which a row is a pixel.
template <typename T>
struct BatchNormRows {
  const T* x;
  std::size_t slot_stride, row_stride;
  int slots;
  std::size_t rows, features;  ///< sizes of one slot
  const T* weight;             ///< [slots, features], or null: 1
  const T* bias;               ///< [slots, features], or null: 0
  bool relu;                   ///< y is max(0, normalised).
};

/// Statistics over the rows; both [slots, features]. rstd = 1 / sqrt(variance + eps).
template <typename T>
struct BatchNormStatistics {
  T *means, *rstds;
};

/// [slots, features] each, or null: moved by `momentum` toward the mean and the unbiased variance of the rows.
template <typename T>
struct RunningStatistics {
  T *mean, *variance;
  double momentum;
};

/// Numbers (of the type computed in) that sums in parts take.
[[nodiscard]] std::size_t batch_norm_workspace(std::size_t rows, std::size_t features, int slots);

/// Statistics of the rows, of which there must be one at least.
void batch_norm_statistics(const BatchNormRows<float>& in, double eps, const BatchNormStatistics<float>& out,
                           const RunningStatistics<float>& running, float* workspace, void* stream);
void batch_norm_statistics(const BatchNormRows<double>& in, double eps, const BatchNormStatistics<double>& out,
                           const RunningStatistics<double>& running, double* workspace, void* stream);

/// y = (x - mean) rstd weight + bias, laid out as x.
void batch_norm(const BatchNormRows<float>& in, const BatchNormStatistics<float>& by, float* y, void* stream);
void batch_norm(const BatchNormRows<double>& in, const BatchNormStatistics<double>& by, double* y, void* stream);

/// Gradients that batch_norm_backward gives; null: not wanted.
template <typename T>
struct BatchNormGradients {
  T* x;       ///< Laid out as x.
  T* weight;  ///< [slots, features]
  T* bias;    ///< [slots, features]
};

/// Gradients by those of y, `dy` laid out as x. `own`: the statistics are those of the rows, and x's gradient goes
/// through them, too; else they were given.
void batch_norm_backward(const BatchNormRows<float>& in, const BatchNormStatistics<float>& by, bool own,
                         const float* dy, const BatchNormGradients<float>& out, float* workspace, void* stream);
void batch_norm_backward(const BatchNormRows<double>& in, const BatchNormStatistics<double>& by, bool own,
                         const double* dy, const BatchNormGradients<double>& out, double* workspace, void* stream);

}  // namespace hfta::fusion::cuda
