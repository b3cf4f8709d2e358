// Layer normalisation: a warp has a row; gradients of weights are sums over a slot's rows, part by part
// (feature_rows.cuh), then joined.
#include <cmath>

#include "fusion/cuda/feature_rows.cuh"
#include "fusion/cuda/norm_kernels.hpp"

namespace hfta::fusion::cuda {
namespace {

template <typename T>
__device__ T weight_of(const NormRows<T>& all, unsigned slot, std::size_t feature) {
  return all.weight != nullptr ? all.weight[slot * all.features + feature] : T{1};
}

template <typename T>
__global__ void layer_norm_kernel(NormRows<T> all, T* y, T* means, T* rstds) {
  for_rows(all.rows, [&](unsigned slot, std::size_t at, unsigned lane) {
    const std::size_t n = all.features;
    const T* x = all.x + at * n;
    T sum = 0, squares = 0;
    for (std::size_t k = lane; k < n; k += kLanes) sum += x[k];
    const T mean = over_lanes(sum, Sum()) / static_cast<T>(n);
    for (std::size_t k = lane; k < n; k += kLanes) squares += (x[k] - mean) * (x[k] - mean);
    const T variance = over_lanes(squares, Sum()) / static_cast<T>(n);
    const T rstd = 1 / std::sqrt(variance + static_cast<T>(all.eps));
    for (std::size_t k = lane; k < n; k += kLanes) {
      const T bias = all.bias != nullptr ? all.bias[slot * n + k] : T{0};
      y[at * n + k] = (x[k] - mean) * rstd * weight_of(all, slot, k) + bias;
    }
    if (lane == 0) means[at] = mean, rstds[at] = rstd;
  });
}

// dx = rstd (g - mean(g) - h mean(g h)), where g = dy weight and h = (x - mean) rstd.
template <typename T>
__global__ void layer_norm_input_kernel(NormRows<T> all, const T* dy, const T* means, const T* rstds, T* dx) {
  for_rows(all.rows, [&](unsigned slot, std::size_t at, unsigned lane) {
    const std::size_t n = all.features;
    const T *x = all.x + at * n, *g = dy + at * n;
    const T mean = means[at], rstd = rstds[at];
    T sum = 0, products = 0;
    for (std::size_t k = lane; k < n; k += kLanes) {
      const T own = g[k] * weight_of(all, slot, k);
      sum += own;
      products += own * ((x[k] - mean) * rstd);
    }
    const T mean_g = over_lanes(sum, Sum()) / static_cast<T>(n);
    const T mean_gh = over_lanes(products, Sum()) / static_cast<T>(n);
    for (std::size_t k = lane; k < n; k += kLanes) {
      dx[at * n + k] = rstd * (g[k] * weight_of(all, slot, k) - mean_g - (x[k] - mean) * rstd * mean_gh);
    }
  });
}

// Sums of dy times the normalised numbers, and of dy, by part or in all; null: not wanted.
template <typename T>
struct WeightSums {
  T *weight, *bias;

  __device__ void set(std::size_t at, T by_weight, T by_bias) const {
    if (weight != nullptr) weight[at] = by_weight;
    if (bias != nullptr) bias[at] = by_bias;
  }
};

template <typename T>
__global__ void layer_norm_sums_kernel(NormRows<T> all, const T* dy, const T* means, const T* rstds, WeightSums<T> to) {
  __shared__ T of_groups[2][kGroups][kLanes];
  const Place at = place_in(all.rows);
  const std::size_t n = all.features, first = at.slot * all.rows;
  T weight = 0, bias = 0;
  if (at.feature < n) {
    const std::size_t begin = first * n + at.feature;
    for_numbers(all.x + begin, dy + begin, at, n, [&](std::size_t row, T x, T g) {
      weight += g * ((x - means[first + row]) * rstds[first + row]);
      bias += g;
    });
  }
  weight = over_groups(of_groups[0], at, weight, Sum());
  bias = over_groups(of_groups[1], at, bias, Sum());
  if (at.group != 0 || at.feature >= n) return;
  to.set(place_of_part(at.slot, blockIdx.z, gridDim.z, n) + at.feature, weight, bias);
}

template <typename T>
__global__ void layer_norm_weights_kernel(NormRows<T> all, WeightSums<const T> parts, WeightSums<T> to) {
  __shared__ T of_groups[2][kGroups][kLanes];
  const std::size_t number = parts_of(all.rows).number, n = all.features;
  const Place at = place_in_parts(number);
  T weight = 0, bias = 0;
  if (at.feature < n && number > 0) {  // without rows there may be no workspace either
    const std::size_t first = place_of_part(at.slot, 0, number, n) + at.feature;
    for_numbers(parts.weight + first, parts.bias + first, at, n, [&](std::size_t, T by_weight, T by_bias) {
      weight += by_weight;
      bias += by_bias;
    });
  }
  weight = over_groups(of_groups[0], at, weight, Sum());
  bias = over_groups(of_groups[1], at, bias, Sum());
  if (at.group == 0 && at.feature < n) to.set(at.slot * n + at.feature, weight, bias);
}

template <typename T>
bool empty(const NormRows<T>& rows) {
  return rows.slots == 0 || rows.features == 0;
}

template <typename T>
void forward(const NormRows<T>& all, T* y, T* means, T* rstds, void* stream) {
  if (empty(all) || all.rows == 0) return;
  launch("layer norm", layer_norm_kernel<T>, grid_of_rows(all.rows, all.slots), stream, all, y, means, rstds);
}

template <typename T>
void backward(const NormRows<T>& all, const T* dy, const T* means, const T* rstds, const NormGradients<T>& out,
              T* workspace, void* stream) {
  if (empty(all)) return;
  if (out.x != nullptr && all.rows > 0) {
    launch("layer norm's gradient", layer_norm_input_kernel<T>, grid_of_rows(all.rows, all.slots), stream, all, dy,
           means, rstds, out.x);
  }
  if (out.weight == nullptr && out.bias == nullptr) return;
  const WeightSums<T> wanted{out.weight, out.bias};
  const std::size_t parts = parts_of(all.rows).number,
                    half = parts * all.features * static_cast<std::size_t>(all.slots);
  const WeightSums<T> sums = parts == 1 ? wanted : WeightSums<T>{workspace, workspace + half};
  if (parts > 0) {
    launch("layer norm's sums for weights", layer_norm_sums_kernel<T>,
           grid_of_features(all.rows, all.features, all.slots), stream, all, dy, means, rstds, sums);
  }
  if (parts == 1) return;
  launch("layer norm's gradient of weights", layer_norm_weights_kernel<T>, grid_of_joins(all.features, all.slots),
         stream, all, WeightSums<const T>{workspace, workspace + half}, wanted);
}

}  // namespace

void layer_norm(const NormRows<float>& rows, float* y, float* means, float* rstds, void* stream) {
  forward(rows, y, means, rstds, stream);
}
void layer_norm(const NormRows<double>& rows, double* y, double* means, double* rstds, void* stream) {
  forward(rows, y, means, rstds, stream);
}
std::size_t layer_norm_workspace(std::size_t rows, std::size_t features, int slots) {
  return 2 * static_cast<std::size_t>(slots) * parts_of(rows).number * features;
}
void layer_norm_backward(const NormRows<float>& rows, const float* dy, const float* means, const float* rstds,
                         const NormGradients<float>& out, float* workspace, void* stream) {
  backward(rows, dy, means, rstds, out, workspace, stream);
}
void layer_norm_backward(const NormRows<double>& rows, const double* dy, const double* means, const double* rstds,
                         const NormGradients<double>& out, double* workspace, void* stream) {
  backward(rows, dy, means, rstds, out, workspace, stream);
}

}  // namespace hfta::fusion::cuda
