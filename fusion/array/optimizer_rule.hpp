#pragma once
/// The update of one element, shared by the CPU's loops and the GPU's kernels. Without torch; C++17 (nvcc).
///
/// Order of operations is that of torch.optim's single-tensor forms.

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

template <typename T>
HFTA_BOTH void sgd_element(T& weight, T gradient, T& buffer, const SgdNumbers<T>& k) {
  const T d = gradient * k.scale + k.decay * weight;
  buffer = k.begins ? d : k.momentum * buffer + k.undamped * d;
  weight -= k.lr * (k.nesterov ? d + k.momentum * buffer : buffer);
}

/// Without momentum the buffer is not touched.
template <typename T>
HFTA_BOTH void plain_sgd_element(T& weight, T gradient, const SgdNumbers<T>& k) {
  weight -= k.lr * (gradient * k.scale + k.decay * weight);
}

template <typename T>
HFTA_BOTH void adam_element(T& weight, T gradient, T& first, T& second, const AdamNumbers<T>& k) {
  const T d = gradient * k.scale + k.decay * weight;
  first = first + k.rest1 * (d - first);
  second = second * k.beta2 + k.rest2 * d * d;
  weight = weight * k.shrink - k.size * (first / (std::sqrt(second) / k.root + k.eps));
}

}  // namespace hfta::fusion
