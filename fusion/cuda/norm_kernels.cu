// Layer normalisation: a warp has a row; gradients of weights are sums over a slot's rows, a block to 32 features.
#include <cmath>

#include "fusion/cuda/norm_kernels.hpp"
#include "fusion/cuda/warps.cuh"

namespace hfta::fusion::cuda {
namespace {

constexpr unsigned kGroups = kThreads / kLanes;  // rows that a block adds up side by side

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

// With g = dy weight and h = (x - mean) rstd: rstd (g - mean(g) - h mean(g h)).
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

// x over tiles of 32 features, y over slots. Warp r of the block adds up rows r, r + 8, ...
template <typename T>
__global__ void layer_norm_weights_kernel(NormRows<T> all, const T* dy, const T* means, const T* rstds, T* dweight,
                                          T* dbias) {
  __shared__ T sums[2][kGroups][kLanes];
  const unsigned lane = threadIdx.x % kLanes, group = threadIdx.x / kLanes;
  const std::size_t n = all.features, k = static_cast<std::size_t>(blockIdx.x) * kLanes + lane;
  T weight = 0, bias = 0;
  for (std::size_t r = group; k < n && r < all.rows; r += kGroups) {
    const std::size_t at = blockIdx.y * all.rows + r;
    const T g = dy[at * n + k];
    weight += g * ((all.x[at * n + k] - means[at]) * rstds[at]);
    bias += g;
  }
  sums[0][group][lane] = weight;
  sums[1][group][lane] = bias;
  __syncthreads();
  if (group != 0 || k >= n) return;
  for (unsigned g = 1; g < kGroups; ++g) weight += sums[0][g][lane], bias += sums[1][g][lane];
  if (dweight != nullptr) dweight[blockIdx.y * n + k] = weight;
  if (dbias != nullptr) dbias[blockIdx.y * n + k] = bias;
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
              void* stream) {
  if (empty(all)) return;
  if (out.x != nullptr && all.rows > 0) {
    launch("layer norm's gradient", layer_norm_input_kernel<T>, grid_of_rows(all.rows, all.slots), stream, all, dy,
           means, rstds, out.x);
  }
  if (out.weight == nullptr && out.bias == nullptr) return;
  const dim3 tiles(static_cast<unsigned>((all.features + kLanes - 1) / kLanes), static_cast<unsigned>(all.slots), 1);
  launch("layer norm's gradient of weights", layer_norm_weights_kernel<T>, tiles, stream, all, dy, means, rstds,
         out.weight, out.bias);
}

}  // namespace

void layer_norm(const NormRows<float>& rows, float* y, float* means, float* rstds, void* stream) {
  forward(rows, y, means, rstds, stream);
}
void layer_norm(const NormRows<double>& rows, double* y, double* means, double* rstds, void* stream) {
  forward(rows, y, means, rstds, stream);
}
void layer_norm_backward(const NormRows<float>& rows, const float* dy, const float* means, const float* rstds,
                         const NormGradients<float>& out, void* stream) {
  backward(rows, dy, means, rstds, out, stream);
}
void layer_norm_backward(const NormRows<double>& rows, const double* dy, const double* means, const double* rstds,
                         const NormGradients<double>& out, void* stream) {
  backward(rows, dy, means, rstds, out, stream);
}

}  // namespace hfta::fusion::cuda
