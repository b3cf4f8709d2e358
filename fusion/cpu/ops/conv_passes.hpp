#pragma once
/// How convolutions run: what conv.cpp has read becomes kernels, forward and backward, of the passes of
/// kernels/conv_pass.hpp.

#include "fusion/cpu/builder.hpp"
#include "fusion/cpu/kernels/conv_geometry.hpp"

namespace hfta::fusion::cpu {

/// x [N, C, H, W], weight [O, C / groups, kh, kw], bias [O] or undefined, y [N, O, H', W']; x and y lie channels last.
/// `shape` is that of the convolution which a transposed one undoes: from y to x.
struct Conv {
  Tensor x, weight, bias, y;
  bool relu = false;  ///< y is what a relu makes of the result.
  bool transposed = false;
  ConvShape shape;

  [[nodiscard]] std::int64_t channels() const { return transposed ? shape.c : shape.o; }  ///< Channels of y.
  [[nodiscard]] std::int64_t pixels() const {                                             ///< Pixels of an image of y.
    return transposed ? shape.in[0] * shape.in[1] : shape.out[0] * shape.out[1];
  }
};

/// Emits the kernel that computes y, and what computes gradients of x, weight and bias where somebody wants them.
void emit_conv(Builder& b, const Conv& conv);

}  // namespace hfta::fusion::cpu
