// Batch normalisation: statistics and sums are made part by part (feature_rows.cuh), and the parts joined likewise.
#include <cmath>

#include "fusion/cuda/batch_norm_kernels.hpp"
#include "fusion/cuda/feature_rows.cuh"

namespace hfta::fusion::cuda {
namespace {

template <typename T>
dim3 grid_of(const BatchNormRows<T>& in) {
  return grid_of_features(in.rows, in.features, in.slots);
}

// The function that normalises a feature's numbers.
template <typename T>
struct Feature {
  T mean, rstd, weight, bias;
  bool relu;

  __device__ Feature(const BatchNormRows<T>& in, const BatchNormStatistics<T>& by, std::size_t at)
      : mean(by.means[at]),
        rstd(by.rstds[at]),
        weight(in.weight != nullptr ? in.weight[at] : T{1}),
        bias(in.bias != nullptr ? in.bias[at] : T{0}),
        relu(in.relu) {}

  [[nodiscard]] __device__ T normal(T x) const { return (x - mean) * rstd; }
  [[nodiscard]] __device__ T value(T normal) const {
    const T y = normal * weight + bias;
    return relu && y < 0 ? T{0} : y;  // NaN stays
  }
  [[nodiscard]] __device__ T gradient(T dy, T normal) const { return relu && normal * weight + bias <= 0 ? T{0} : dy; }
};

// Mean and sum of squared differences from it, of `count` numbers; joined as Chan, Golub and LeVeque (1979) do.
template <typename T>
struct Moments {
  T count, mean, squares;

  __device__ void join(const Moments& other) {
    const T all = count + other.count;
    if (all == 0) return;
    const T share = other.count / all, apart = other.mean - mean;
    mean += apart * share;
    squares += other.squares + apart * apart * (count * share);
    count = all;
  }
};

struct Joined {
  template <typename T>
  __device__ Moments<T> operator()(Moments<T> a, const Moments<T>& b) const {
    a.join(b);
    return a;
  }
};

template <typename T>
__device__ Moments<T> moments_of(const Numbers<T>& numbers) {
  Moments<T> all{static_cast<T>(numbers.count), 0, 0};
  for (int i = 0; i < kAtOnce; ++i) all.mean += numbers.of[i];
  all.mean /= all.count;
  for (int i = 0; i < kAtOnce; ++i) {
    const T apart = numbers.of[i] - all.mean;
    all.squares += i < numbers.count ? apart * apart : T{0};
  }
  return all;
}

// Writes to `workspace`: means of all parts, then squares.
template <typename T>
__global__ void batch_norm_moments_kernel(BatchNormRows<T> in, T* workspace) {
  __shared__ Moments<T> of_groups[kGroups][kLanes];
  const Place at = place_in(in.rows);
  const T* x = in.x + at.slot * in.slot_stride + at.feature;
  Moments<T> sum{0, 0, 0};
  for (std::size_t r = at.first; at.feature < in.features && r < at.last; r += kRowsAtOnce) {
    sum.join(moments_of(Numbers<T>(x, at, r, in.row_stride)));
  }
  sum = over_groups(of_groups, at, sum, Joined());
  if (at.group != 0 || at.feature >= in.features) return;
  const std::size_t parts = gridDim.z, to = place_of_part(at.slot, blockIdx.z, parts, in.features) + at.feature;
  workspace[to] = sum.mean;
  workspace[gridDim.y * parts * in.features + to] = sum.squares;
}

template <typename T>
__global__ void batch_norm_statistics_kernel(BatchNormRows<T> in, T eps, BatchNormStatistics<T> out,
                                             RunningStatistics<T> running, const T* workspace) {
  __shared__ Moments<T> of_groups[kGroups][kLanes];
  const Parts parts = parts_of(in.rows);
  const Place place = place_in_parts(parts.number);
  Moments<T> all{0, 0, 0};
  if (place.feature < in.features) {
    const T* const means = workspace + place_of_part(place.slot, 0, parts.number, in.features) + place.feature;
    const T* const squares = means + gridDim.y * parts.number * in.features;
    for_numbers(means, squares, place, in.features, [&](std::size_t part, T mean, T of_part) {
      const std::size_t left = in.rows - part * parts.rows;
      all.join({static_cast<T>(left < parts.rows ? left : parts.rows), mean, of_part});
    });
  }
  all = over_groups(of_groups, place, all, Joined());
  if (place.group != 0 || place.feature >= in.features) return;
  const std::size_t at = place.slot * in.features + place.feature;
  out.means[at] = all.mean;
  out.rstds[at] = 1 / std::sqrt(all.squares / all.count + eps);
  const T by = static_cast<T>(running.momentum);
  if (running.mean != nullptr) running.mean[at] = (1 - by) * running.mean[at] + by * all.mean;
  if (running.variance != nullptr) {
    running.variance[at] = (1 - by) * running.variance[at] + by * (all.squares / (all.count - 1));
  }
}

template <typename T>
__global__ void batch_norm_kernel(BatchNormRows<T> in, BatchNormStatistics<T> by, T* y) {
  const Place at = place_in(in.rows);
  if (at.feature >= in.features) return;
  const Feature<T> feature(in, by, at.slot * in.features + at.feature);
  const std::size_t begin = at.slot * in.slot_stride + at.feature;
  for_numbers(in.x + begin, at, in.row_stride,
              [&](std::size_t row, T x) { y[begin + row * in.row_stride] = feature.value(feature.normal(x)); });
}

// Writes to `workspace`, for all parts: sums of gradients, then of their products with the normalised numbers.
template <typename T>
__global__ void batch_norm_sums_kernel(BatchNormRows<T> in, BatchNormStatistics<T> by, const T* dy, T* workspace) {
  __shared__ T sums[2][kGroups][kLanes];
  const Place at = place_in(in.rows);
  T sum = 0, products = 0;
  if (at.feature < in.features) {
    const Feature<T> feature(in, by, at.slot * in.features + at.feature);
    const std::size_t begin = at.slot * in.slot_stride + at.feature;
    for_numbers(in.x + begin, dy + begin, at, in.row_stride, [&](std::size_t, T x, T by_y) {
      const T normal = feature.normal(x), g = feature.gradient(by_y, normal);
      sum += g;
      products += g * normal;
    });
  }
  sum = over_groups(sums[0], at, sum, Sum());
  products = over_groups(sums[1], at, products, Sum());
  if (at.group != 0 || at.feature >= in.features) return;
  const std::size_t parts = gridDim.z, to = place_of_part(at.slot, blockIdx.z, parts, in.features) + at.feature;
  workspace[to] = sum;
  workspace[gridDim.y * parts * in.features + to] = products;
}

// The parts' sums are left as [slot, feature] where part 0 had its own.
template <typename T>
__global__ void batch_norm_weights_kernel(BatchNormRows<T> in, T* workspace, T* dweight, T* dbias) {
  __shared__ T sums[2][kGroups][kLanes];
  const std::size_t parts = parts_of(in.rows).number;
  const Place place = place_in_parts(parts);
  T* const first = workspace + place_of_part(place.slot, 0, parts, in.features) + place.feature;
  T* const second = first + gridDim.y * parts * in.features;
  T sum = 0, products = 0;
  if (place.feature < in.features) {
    for_numbers(first, second, place, in.features, [&](std::size_t, T of_part, T products_of_part) {
      sum += of_part;
      products += products_of_part;
    });
  }
  sum = over_groups(sums[0], place, sum, Sum());
  products = over_groups(sums[1], place, products, Sum());
  if (place.group != 0 || place.feature >= in.features) return;
  *first = sum;
  *second = products;
  const std::size_t at = place.slot * in.features + place.feature;
  if (dbias != nullptr) dbias[at] = sum;
  if (dweight != nullptr) dweight[at] = products;
}

// rstd weight (g - mean(g) - h mean(g h)), h the normalised number; without the means where statistics were given.
template <typename T>
__global__ void batch_norm_input_kernel(BatchNormRows<T> in, BatchNormStatistics<T> by, bool own, const T* dy,
                                        const T* workspace, T* dx) {
  const Place at = place_in(in.rows);
  if (at.feature >= in.features) return;
  const Feature<T> feature(in, by, at.slot * in.features + at.feature);
  const std::size_t parts = gridDim.z, sums = place_of_part(at.slot, 0, parts, in.features) + at.feature;
  const T rows = static_cast<T>(in.rows);
  const T mean_g = own ? workspace[sums] / rows : T{0};
  const T mean_gh = own ? workspace[gridDim.y * parts * in.features + sums] / rows : T{0};
  const T scale = feature.rstd * feature.weight;
  const std::size_t begin = at.slot * in.slot_stride + at.feature;
  for_numbers(in.x + begin, dy + begin, at, in.row_stride, [&](std::size_t row, T x, T by_y) {
    const T normal = feature.normal(x), g = feature.gradient(by_y, normal);
    dx[begin + row * in.row_stride] = scale * (g - mean_g - normal * mean_gh);
  });
}

template <typename T>
bool empty(const BatchNormRows<T>& in) {
  return in.slots == 0 || in.features == 0 || in.rows == 0;
}

template <typename T>
void statistics(const BatchNormRows<T>& in, double eps, const BatchNormStatistics<T>& out,
                const RunningStatistics<T>& running, T* workspace, void* stream) {
  if (empty(in)) return;
  launch("batch norm's moments", batch_norm_moments_kernel<T>, grid_of(in), stream, in, workspace);
  launch("batch norm's statistics", batch_norm_statistics_kernel<T>, grid_of_joins(in.features, in.slots), stream, in,
         static_cast<T>(eps), out, running, workspace);
}

template <typename T>
void forward(const BatchNormRows<T>& in, const BatchNormStatistics<T>& by, T* y, void* stream) {
  if (!empty(in)) launch("batch norm", batch_norm_kernel<T>, grid_of(in), stream, in, by, y);
}

template <typename T>
void backward(const BatchNormRows<T>& in, const BatchNormStatistics<T>& by, bool own, const T* dy,
              const BatchNormGradients<T>& out, T* workspace, void* stream) {
  if (empty(in)) return;
  if (own || out.weight != nullptr || out.bias != nullptr) {
    launch("batch norm's sums", batch_norm_sums_kernel<T>, grid_of(in), stream, in, by, dy, workspace);
    launch("batch norm's gradient of weights", batch_norm_weights_kernel<T>, grid_of_joins(in.features, in.slots),
           stream, in, workspace, out.weight, out.bias);
  }
  if (out.x == nullptr) return;
  launch("batch norm's gradient", batch_norm_input_kernel<T>, grid_of(in), stream, in, by, own, dy, workspace, out.x);
}

}  // namespace

std::size_t batch_norm_workspace(std::size_t rows, std::size_t features, int slots) {
  return 2 * static_cast<std::size_t>(slots) * parts_of(rows).number * features;
}

void batch_norm_statistics(const BatchNormRows<float>& in, double eps, const BatchNormStatistics<float>& out,
                           const RunningStatistics<float>& running, float* workspace, void* stream) {
  statistics(in, eps, out, running, workspace, stream);
}
void batch_norm_statistics(const BatchNormRows<double>& in, double eps, const BatchNormStatistics<double>& out,
                           const RunningStatistics<double>& running, double* workspace, void* stream) {
  statistics(in, eps, out, running, workspace, stream);
}
void batch_norm(const BatchNormRows<float>& in, const BatchNormStatistics<float>& by, float* y, void* stream) {
  forward(in, by, y, stream);
}
void batch_norm(const BatchNormRows<double>& in, const BatchNormStatistics<double>& by, double* y, void* stream) {
  forward(in, by, y, stream);
}
void batch_norm_backward(const BatchNormRows<float>& in, const BatchNormStatistics<float>& by, bool own,
                         const float* dy, const BatchNormGradients<float>& out, float* workspace, void* stream) {
  backward(in, by, own, dy, out, workspace, stream);
}
void batch_norm_backward(const BatchNormRows<double>& in, const BatchNormStatistics<double>& by, bool own,
                         const double* dy, const BatchNormGradients<double>& out, double* workspace, void* stream) {
  backward(in, by, own, dy, out, workspace, stream);
}

}  // namespace hfta::fusion::cuda
