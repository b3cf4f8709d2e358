#pragma once
/// The update of one element, shared by the CPU's loops and the GPU's kernels. Without torch; C++17 (nvcc).
///
/// Operations, their order and where they round are those of torch.optim's single-tensor forms on ATen's kernels, which
/// multiply and add in one (fma): the same gradients give the same bits.

#include <cmath>

#include "base/both.hpp"

namespace hfta::fusion {

/// One slot's numbers for a step of sgd, rounded to the weights' type.
template <typename T>
struct SgdNumbers {
  T lr, decay, momentum, undamped, scale;  ///< undamped: 1 - dampening; scale: clipping's factor on the gradient
  bool nesterov, begins;                   ///< begins: the slot's first step
};

/// One slot's numbers for a step of adam or adamw.
template <typename T>
struct AdamNumbers {
  T shrink, decay;        ///< 1 - lr * weight_decay and 0 (adamw), or 1 and weight_decay (adam)
  T rest1, beta2, rest2;  ///< 1 - beta1, beta2, 1 - beta2
  T eps, size, root;      ///< size: lr / (1 - beta1^t); root: sqrt(1 - beta2^t); both computed in double
  T scale;
};

/// torch.nn.utils.clip_grad_norm_'s factor for a gradient whose elements' squares sum to `squares`. A NaN norm makes
/// the slot's own update NaN, as in PyTorch.
HFTA_BOTH double clip_factor(double clip_norm, double squares) {
  if (std::isnan(squares)) return squares;
  const double factor = clip_norm / (std::sqrt(squares) + 1e-6);
  return factor < 1.0 ? factor : 1.0;
}

template <typename T>
HFTA_BOTH void sgd_element(T& weight, T gradient, T& buffer, const SgdNumbers<T>& k) {
  const T d = std::fma(k.decay, weight, gradient * k.scale);
  buffer = k.begins ? d : std::fma(k.undamped, d, k.momentum * buffer);
  weight = std::fma(-k.lr, k.nesterov ? std::fma(k.momentum, buffer, d) : buffer, weight);
}

/// Without momentum the buffer is not touched.
template <typename T>
HFTA_BOTH void plain_sgd_element(T& weight, T gradient, const SgdNumbers<T>& k) {
  weight = std::fma(-k.lr, std::fma(k.decay, weight, gradient * k.scale), weight);
}

template <typename T>
HFTA_BOTH void adam_element(T& weight, T gradient, T& first, T& second, const AdamNumbers<T>& k) {
  const T d = std::fma(k.decay, weight, gradient * k.scale);
  const T away = d - first;  // lerp, from the nearer end
  first = k.rest1 < T(0.5) ? std::fma(k.rest1, away, first) : std::fma(k.rest1 - T(1), away, d);
  second = std::fma(k.rest2 * d, d, second * k.beta2);
  weight = weight * k.shrink + -k.size * first / (std::sqrt(second) / k.root + k.eps);
}

}  // namespace hfta::fusion
