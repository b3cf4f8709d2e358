#pragma once
/// Rotary position embedding (Su et al. 2021, arXiv:2104.09864), with the pairs of a row of n elements taken from its
/// two halves, as GPT-NeoX and Llama do: y = x cos + [-x2, x1] sin. n is even; rows have no gaps.

#include <cstdint>

namespace hfta::fusion::cpu {

/// `rows` rows, each so many elements behind the one before (0: the same).
template <typename T>
struct RotaryRows {
  const T* x = nullptr;  ///< Input; in backward, dy.
  const T* cos = nullptr;
  const T* sin = nullptr;
  T* y = nullptr;  ///< Result; in backward, dx.
  std::int64_t rows = 0, n = 0;
  std::int64_t x_step = 0, cos_step = 0, sin_step = 0, y_step = 0;
};

void rotate(const RotaryRows<float>& rows);
void rotate(const RotaryRows<double>& rows);
/// dx = or += the gradient.
void rotate_backward(const RotaryRows<float>& rows, bool add);
void rotate_backward(const RotaryRows<double>& rows, bool add);

}  // namespace hfta::fusion::cpu
