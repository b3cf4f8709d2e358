#pragma once
/// Layer normalisation with a weight and a bias of each slot's own, and its gradients. Without torch; C++17.
///
/// Calls are as in slot_kernels.hpp: asynchronous on `stream`, with device pointers, fit for a CUDA graph; not in a
/// build without nvcc. Sums over rows are made in parts, whose number follows from the rows alone.

#include <cstddef>

namespace hfta::fusion::cuda {

/// Rows of c slots.
template <typename T>
struct NormRows {
  const T* x;       ///< [slots, rows, features] row-major
  const T* weight;  ///< [slots, features], or null: 1
  const T* bias;    ///< [slots, features], or null: 0
  int slots;
  std::size_t rows, features;  ///< rows: of a slot
  double eps;
};

/// y = (x - mean) rstd weight + bias, with mean and variance of each row; rstd = 1 / sqrt(variance + eps).
/// `means`, `rstds`: [slots, rows].
void layer_norm(const NormRows<float>& rows, float* y, float* means, float* rstds, void* stream);
void layer_norm(const NormRows<double>& rows, double* y, double* means, double* rstds, void* stream);

/// Gradients that layer_norm_backward gives; null: not wanted.
template <typename T>
struct NormGradients {
  T* x;       ///< [slots, rows, features]
  T* weight;  ///< [slots, features]
  T* bias;    ///< [slots, features]
};

/// Numbers (of the type computed in) that sums in parts take.
[[nodiscard]] std::size_t layer_norm_workspace(std::size_t rows, std::size_t features, int slots);

/// Gradients by those of y, `dy` [slots, rows, features].
void layer_norm_backward(const NormRows<float>& rows, const float* dy, const float* means, const float* rstds,
                         const NormGradients<float>& out, float* workspace, void* stream);
void layer_norm_backward(const NormRows<double>& rows, const double* dy, const double* means, const double* rstds,
                         const NormGradients<double>& out, double* workspace, void* stream);

}  // namespace hfta::fusion::cuda
