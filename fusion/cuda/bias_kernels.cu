// Biases of linear layers: gradients are summed part by part (feature_rows.cuh), and the parts joined likewise.
#include "fusion/cuda/bias_kernels.hpp"
#include "fusion/cuda/feature_rows.cuh"

namespace hfta::fusion::cuda {
namespace {

dim3 grid_of(const BiasShape& shape) { return grid_of_features(shape.rows, shape.features, shape.slots); }

template <typename T>
__global__ void add_bias_kernel(BiasShape shape, const T* bias, bool relu, T* y) {
  const Place at = place_in(shape.rows);
  if (at.feature >= shape.features) return;
  const T by = bias[at.slot * shape.features + at.feature];
  T* const begin = y + at.slot * shape.rows * shape.features + at.feature;
  for_numbers<T>(begin, at, shape.features, [&](std::size_t row, T x) {
    const T sum = x + by;
    begin[row * shape.features] = relu && sum < 0 ? T{0} : sum;  // NaN stays
  });
}

template <typename T>
__global__ void bias_sums_kernel(BiasShape shape, const T* dy, const T* y, T* dx, T* workspace) {
  __shared__ T sums[kGroups][kLanes];
  const Place at = place_in(shape.rows);
  T sum = 0;
  if (at.feature < shape.features) {
    const std::size_t begin = at.slot * shape.rows * shape.features + at.feature;
    if (y == nullptr) {
      for_numbers(dy + begin, at, shape.features, [&](std::size_t, T by_y) { sum += by_y; });
    } else {
      for_numbers(y + begin, dy + begin, at, shape.features, [&](std::size_t row, T value, T by_y) {
        const T g = value <= 0 ? T{0} : by_y;
        dx[begin + row * shape.features] = g;
        sum += g;
      });
    }
  }
  sum = over_groups(sums, at, sum, Sum());
  if (at.group != 0 || at.feature >= shape.features) return;
  workspace[place_of_part(at.slot, blockIdx.z, gridDim.z, shape.features) + at.feature] = sum;
}

template <typename T>
__global__ void bias_gradient_kernel(BiasShape shape, const T* workspace, T* dbias) {
  __shared__ T sums[kGroups][kLanes];
  const std::size_t parts = parts_of(shape.rows).number;
  const Place at = place_in_parts(parts);
  T sum = 0;
  if (at.feature < shape.features && parts > 0) {  // without rows there may be no workspace either
    const T* const first = workspace + place_of_part(at.slot, 0, parts, shape.features) + at.feature;
    for_numbers(first, at, shape.features, [&](std::size_t, T of_part) { sum += of_part; });
  }
  sum = over_groups(sums, at, sum, Sum());
  if (at.group == 0 && at.feature < shape.features) dbias[at.slot * shape.features + at.feature] = sum;
}

template <typename T>
void forward(const BiasShape& shape, const T* bias, bool relu, T* y, void* stream) {
  if (shape.slots == 0 || shape.rows == 0 || shape.features == 0) return;
  launch("bias", add_bias_kernel<T>, grid_of(shape), stream, shape, bias, relu, y);
}

template <typename T>
void backward(const BiasShape& shape, const T* dy, const T* y, T* dx, T* dbias, T* workspace, void* stream) {
  if (shape.slots == 0 || shape.features == 0) return;
  const bool one_part = parts_of(shape.rows).number == 1;
  if (shape.rows > 0) {
    launch("sums for a bias", bias_sums_kernel<T>, grid_of(shape), stream, shape, dy, y, dx,
           one_part ? dbias : workspace);
  }
  if (one_part) return;
  launch("bias's gradient", bias_gradient_kernel<T>, grid_of_joins(shape.features, shape.slots), stream, shape,
         workspace, dbias);
}

}  // namespace

void add_bias(const BiasShape& shape, const float* bias, bool relu, float* y, void* stream) {
  forward(shape, bias, relu, y, stream);
}
void add_bias(const BiasShape& shape, const double* bias, bool relu, double* y, void* stream) {
  forward(shape, bias, relu, y, stream);
}

std::size_t bias_workspace(const BiasShape& shape) {
  return static_cast<std::size_t>(shape.slots) * parts_of(shape.rows).number * shape.features;
}

void add_bias_backward(const BiasShape& shape, const float* dy, const float* y, float* dx, float* dbias,
                       float* workspace, void* stream) {
  backward(shape, dy, y, dx, dbias, workspace, stream);
}
void add_bias_backward(const BiasShape& shape, const double* dy, const double* y, double* dx, double* dbias,
                       double* workspace, void* stream) {
  backward(shape, dy, y, dx, dbias, workspace, stream);
}

}  // namespace hfta::fusion::cuda
