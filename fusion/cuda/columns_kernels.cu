// Columns of convolutions: threads side by side have windows, or pixels, side by side, and go through some channels.
#include "fusion/cuda/columns_kernels.hpp"
#include "fusion/cuda/launch.cuh"

namespace hfta::fusion::cuda {
namespace {

constexpr unsigned kChannels = 4;   // channels of a thread, so that it seldom divides
constexpr int kReads = 4;           // reads of a thread that are under way at a time
constexpr unsigned kMostZ = 65535;  // largest z of a grid, which strides over further channels

// Window or pixel (h, w) of a slot's image.
struct Place {
  unsigned image;
  int h, w;
};
__device__ Place place_in(unsigned place, const Extent& size) {
  const unsigned row = place / size.w;
  return {row / size.h, static_cast<int>(row % size.h), static_cast<int>(place % size.w)};
}

__host__ __device__ unsigned places(const ColumnShape& shape, const Extent& size) {
  return static_cast<unsigned>(shape.parts) * shape.images * size.h * size.w;
}

__host__ __device__ unsigned channels_of(const ColumnShape& shape) { return static_cast<unsigned>(shape.channels); }

// Layout of columns.
struct Layout {
  std::size_t channel, row;  // distances from one to the next

  __device__ explicit Layout(const ColumnShape& shape)
      : channel(0), row(static_cast<std::size_t>(shape.images) * shape.windows.h * shape.windows.w) {
    channel = row * shape.kernel.h * shape.kernel.w;
  }
  // The first window of an image of the block's slot, in the first row.
  [[nodiscard]] __device__ std::size_t begin(const ColumnShape& shape, unsigned image) const {
    const unsigned part = image / shape.images, in_part = image % shape.images;
    const std::size_t of_part = channel * shape.channels + (shape.ones ? row : 0);
    return (static_cast<std::size_t>(blockIdx.y) * shape.parts + part) * of_part +
           static_cast<std::size_t>(in_part) * shape.windows.h * shape.windows.w;
  }
};

__device__ bool is_in(int at, int size) { return at >= 0 && at < size; }

template <typename T>
__global__ void columns_kernel(ColumnShape shape, Pixels<const T> in, T* columns) {
  const unsigned index = blockIdx.x * kThreads + threadIdx.x;
  if (index >= places(shape, shape.windows)) return;
  const Place at = place_in(index, shape.windows);
  const Layout layout(shape);
  T* const begin = columns + layout.begin(shape, at.image) + at.h * shape.windows.w + at.w;
  const T* const image = in.x + blockIdx.y * in.slot + at.image * in.image;
  const int top = at.h * shape.stride.h - shape.padding.h, left = at.w * shape.stride.w - shape.padding.w;
  for (unsigned channel = blockIdx.z; channel < channels_of(shape); channel += gridDim.z) {
    const T* const plane = image + channel * in.channel;
    T* to = begin + channel * layout.channel;
    for (int i = 0; i < shape.kernel.h; ++i) {
      const int h = top + i * shape.dilation.h;
      for (int j = 0; j < shape.kernel.w; ++j, to += layout.row) {
        const int w = left + j * shape.dilation.w;
        *to = is_in(h, shape.image.h) && is_in(w, shape.image.w) ? plane[h * in.row + w * in.column] : T{0};
      }
    }
  }
  if (shape.ones && blockIdx.z == 0) begin[channels_of(shape) * layout.channel] = T{1};
}

// Windows before `last`, from `first` on, may have a pixel; in one dimension.
struct Range {
  int padded, first, last;  // the pixel's place in the padded image

  __device__ Range(int pixel, int padding, int kernel, int dilation, int stride, int windows)
      : padded(pixel + padding), first(0), last(padded / stride + 1) {
    const int beyond = padded - (kernel - 1) * dilation - 1;  // the last pixel behind which a window may begin
    if (beyond >= 0) first = beyond / stride + 1;
    if (last > windows) last = windows;
  }
  // Index of the weight that the pixel meets in a window; below 0: it lies between two.
  [[nodiscard]] __device__ int weight(int window, int stride, int dilation) const {
    const int within = padded - window * stride;
    if (dilation == 1) return within;
    return within % dilation == 0 ? within / dilation : -1;
  }
};

// The sum of a pixel's numbers in the columns of its channel, whose first row begins at `columns` for its image.
template <typename T>
__device__ T sum_of_pixel(const ColumnShape& shape, const T* columns, std::size_t row, const Range& down,
                          const Range& across) {
  T sum = 0;
  for (int h = down.first; h < down.last; ++h) {
    const int i = down.weight(h, shape.stride.h, shape.dilation.h);
    if (i < 0) continue;
    const T* const line = columns + static_cast<std::size_t>(i) * shape.kernel.w * row + h * shape.windows.w;
    for (int w = across.first; w < across.last; w += kReads) {
      T numbers[kReads];  // all are read before one is added
      for (int k = 0; k < kReads; ++k) {
        const int j = w + k < across.last ? across.weight(w + k, shape.stride.w, shape.dilation.w) : -1;
        numbers[k] = j < 0 ? T{0} : line[j * row + w + k];
      }
      for (int k = 0; k < kReads; ++k) sum += numbers[k];
    }
  }
  return sum;
}

template <typename T>
__global__ void images_kernel(ColumnShape shape, const T* columns, Pixels<T> out) {
  const unsigned index = blockIdx.x * kThreads + threadIdx.x;
  if (index >= places(shape, shape.image)) return;
  const Place at = place_in(index, shape.image);
  const Layout layout(shape);
  const T* const begin = columns + layout.begin(shape, at.image);
  T* const to = out.x + blockIdx.y * out.slot + at.image * out.image + at.h * out.row + at.w * out.column;
  const Range down(at.h, shape.padding.h, shape.kernel.h, shape.dilation.h, shape.stride.h, shape.windows.h);
  const Range across(at.w, shape.padding.w, shape.kernel.w, shape.dilation.w, shape.stride.w, shape.windows.w);
  for (unsigned channel = blockIdx.z; channel < channels_of(shape); channel += gridDim.z) {
    to[channel * out.channel] = sum_of_pixel(shape, begin + channel * layout.channel, layout.row, down, across);
  }
}

// x over `places` of a slot, y over slots, z over channels.
dim3 grid_of(const ColumnShape& shape, unsigned places) {
  const unsigned some = (channels_of(shape) + kChannels - 1) / kChannels;
  return {(places + kThreads - 1) / kThreads, static_cast<unsigned>(shape.slots), std::min(kMostZ, some)};
}

template <typename T>
void to_columns(const ColumnShape& shape, const Pixels<const T>& in, T* columns, void* stream) {
  const unsigned all = places(shape, shape.windows);
  if (all == 0 || shape.slots == 0 || shape.channels == 0) return;
  launch("columns", columns_kernel<T>, grid_of(shape, all), stream, shape, in, columns);
}

template <typename T>
void to_images(const ColumnShape& shape, const T* columns, const Pixels<T>& out, void* stream) {
  const unsigned all = places(shape, shape.image);
  if (all == 0 || shape.slots == 0 || shape.channels == 0) return;
  launch("images of columns", images_kernel<T>, grid_of(shape, all), stream, shape, columns, out);
}

}  // namespace

void columns(const ColumnShape& shape, const Pixels<const float>& in, float* columns, void* stream) {
  to_columns(shape, in, columns, stream);
}
void columns(const ColumnShape& shape, const Pixels<const double>& in, double* columns, void* stream) {
  to_columns(shape, in, columns, stream);
}

void images(const ColumnShape& shape, const float* columns, const Pixels<float>& out, void* stream) {
  to_images(shape, columns, out, stream);
}
void images(const ColumnShape& shape, const double* columns, const Pixels<double>& out, void* stream) {
  to_images(shape, columns, out, stream);
}

}  // namespace hfta::fusion::cuda
