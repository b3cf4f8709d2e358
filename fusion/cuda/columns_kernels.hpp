#pragma once
/// Images of c slots as the columns that a 2-d convolution multiplies its weights with (im2col), and gradients by the
/// columns as those by the images (col2im). Without torch; C++17.
///
/// Calls are as in slot_kernels.hpp: asynchronous on `stream`, with device pointers, fit for a CUDA graph; not in a
/// build without nvcc. A number is made by one thread, which adds in one order: a slot's bits do not depend on how many
/// slots there are, nor on how its images are divided into parts.

#include <cstddef>

namespace hfta::fusion::cuda {

/// Two numbers of an image or a window: down and across.
struct Extent {
  int h, w;
};

/// Columns are [slots, parts, rows, images * windows.h * windows.w], row-major: row (k * kernel.h + i) * kernel.w + j
/// holds what weight (i, j) of channel k is multiplied with in every window, and 0 where that is padding. With `ones`
/// there is one more row, of ones, for a bias.
struct ColumnShape {
  int slots, parts;
  int images;  ///< Number of images in a part; a slot's parts follow one another.
  int channels;
  Extent image, windows;  ///< H and W; OH and OW
  Extent kernel, stride, padding, dilation;
  bool ones;
};

/// Number (h, w) of channel k of image n of slot b is x[b * slot + n * image + k * channel + h * row + w * column].
template <typename T>
struct Pixels {
  T* x;
  std::size_t slot, image, channel, row, column;  ///< 0 where all have the same numbers.
};

/// Numbers that a slot's images have in one channel, and windows of a slot: each below this.
constexpr std::size_t kMostPlaces = std::size_t{1} << 31;

/// The images' columns.
void columns(const ColumnShape& shape, const Pixels<const float>& in, float* columns, void* stream);
void columns(const ColumnShape& shape, const Pixels<const double>& in, double* columns, void* stream);

/// Every number of the images is the sum of the columns' numbers that columns() copies it to, of which there may be
/// none; shape.ones is false.
void images(const ColumnShape& shape, const float* columns, const Pixels<float>& out, void* stream);
void images(const ColumnShape& shape, const double* columns, const Pixels<double>& out, void* stream);

}  // namespace hfta::fusion::cuda
