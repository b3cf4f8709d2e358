#pragma once
/// 2-d convolutions of each slot's own as matrix products, with columns that kernels of ours make
/// (fusion/cuda/columns_kernels.hpp).

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace hfta::fusion {

/// A convolution's windows: two numbers each, down and across, as at::convolution takes them.
struct ConvWindows {
  std::vector<std::int64_t> stride, padding, dilation;
};

/// Numbers of columns that are there at a time, 1 GiB of float32: a layer that has more is done piece by piece.
constexpr std::int64_t kMostColumns = std::int64_t{1} << 28;

/// `x` [c, N, C, H, W] with any strides, of a type that kernels_take(); `weight` [c, O, C, kh, kw] and `bias` [c, O] or
/// undefined, both of x's type: [c, N, O, OH, OW], whose memory is [c, O, N, OH, OW], with no slot's numbers in
/// another's. Its backward makes the columns again. An x that slots share, [N, C, H, W] expanded, gets columns once.
/// A piece has one image at least, whatever `most` is. Throws c10::Error where no window fits.
[[nodiscard]] at::Tensor own_conv2d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                                    const ConvWindows& windows, std::int64_t most = kMostColumns);

}  // namespace hfta::fusion
