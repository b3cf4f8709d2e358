// Cross entropy: a warp has a position, so that its lanes read neighbouring classes.
#include <cmath>

#include "fusion/cuda/loss_kernels.hpp"
#include "fusion/cuda/warps.cuh"

namespace hfta::fusion::cuda {
namespace {

// NaN is passed over: it comes back in the sum of exponentials.
struct Largest {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return b > a ? b : a;
  }
};

template <typename T>
__device__ T smoothing_of(const Logits<T>& logits, unsigned slot) {
  return static_cast<T>(logits.smoothing != nullptr ? logits.smoothing[slot] : logits.one);
}

// m = log sum exp x, and the sum of m - x where smoothing mixes it in.
template <typename T>
struct RowSums {
  T log_sum, differences;
};

template <typename T>
__device__ RowSums<T> sums_of(const T* row, std::size_t classes, unsigned lane, bool smooth) {
  T most = static_cast<T>(-INFINITY);
  for (std::size_t k = lane; k < classes; k += kLanes) most = Largest()(most, row[k]);
  most = over_lanes(most, Largest());
  T sum = 0;
  for (std::size_t k = lane; k < classes; k += kLanes) sum += std::exp(row[k] - most);
  const T log_sum = most + std::log(over_lanes(sum, Sum()));
  T differences = 0;
  for (std::size_t k = lane; smooth && k < classes; k += kLanes) differences += log_sum - row[k];
  return {log_sum, smooth ? over_lanes(differences, Sum()) : T{0}};
}

template <typename T>
__global__ void cross_entropy_kernel(Logits<T> logits, T* losses, T* log_sums, T* counted) {
  for_rows(logits.positions, [&](unsigned slot, std::size_t at, unsigned lane) {
    const T* row = logits.x + at * logits.classes;
    const T e = smoothing_of(logits, slot);
    // A slot without smoothing does not see the other classes, which may be infinite.
    const RowSums<T> sums = sums_of(row, logits.classes, lane, e > 0);
    if (lane != 0) return;
    const std::int64_t target = logits.targets[at];
    log_sums[at] = sums.log_sum;
    counted[at] = target == logits.ignored ? T{0} : T{1};
    if (target == logits.ignored) {
      losses[at] = 0;
    } else if (target < 0 || static_cast<std::size_t>(target) >= logits.classes) {
      losses[at] = static_cast<T>(NAN);
    } else {
      const T own = sums.log_sum - row[target];
      losses[at] = e > 0 ? (1 - e) * own + e / static_cast<T>(logits.classes) * sums.differences : own;
    }
  });
}

template <typename T>
__global__ void cross_entropy_backward_kernel(Logits<T> logits, const T* log_sums, const T* weights, T* gradients) {
  for_rows(logits.positions, [&](unsigned slot, std::size_t at, unsigned lane) {
    const T* row = logits.x + at * logits.classes;
    T* out = gradients + at * logits.classes;
    const std::int64_t target = logits.targets[at];
    const T e = smoothing_of(logits, slot), others = e / static_cast<T>(logits.classes);
    const T log_sum = log_sums[at], weight = weights[at];
    for (std::size_t k = lane; k < logits.classes; k += kLanes) {
      const T own = static_cast<std::int64_t>(k) == target ? 1 - e : T{0};
      out[k] = target == logits.ignored ? T{0} : (std::exp(row[k] - log_sum) - own - others) * weight;
    }
  });
}

template <typename T>
bool empty(const Logits<T>& logits) {
  return logits.positions == 0 || logits.slots == 0;
}

template <typename T>
void launch_forward(const Logits<T>& logits, T* losses, T* log_sums, T* counted, void* stream) {
  if (empty(logits)) return;
  launch("cross entropy", cross_entropy_kernel<T>, grid_of_rows(logits.positions, logits.slots), stream, logits, losses,
         log_sums, counted);
}

template <typename T>
void launch_backward(const Logits<T>& logits, const T* log_sums, const T* weights, T* gradients, void* stream) {
  if (empty(logits)) return;
  launch("cross entropy's gradient", cross_entropy_backward_kernel<T>, grid_of_rows(logits.positions, logits.slots),
         stream, logits, log_sums, weights, gradients);
}

}  // namespace

void cross_entropy(const Logits<float>& logits, float* losses, float* log_sums, float* counted, void* stream) {
  launch_forward(logits, losses, log_sums, counted, stream);
}
void cross_entropy(const Logits<double>& logits, double* losses, double* log_sums, double* counted, void* stream) {
  launch_forward(logits, losses, log_sums, counted, stream);
}
void cross_entropy_backward(const Logits<float>& logits, const float* log_sums, const float* weights, float* gradients,
                            void* stream) {
  launch_backward(logits, log_sums, weights, gradients, stream);
}
void cross_entropy_backward(const Logits<double>& logits, const double* log_sums, const double* weights,
                            double* gradients, void* stream) {
  launch_backward(logits, log_sums, weights, gradients, stream);
}

}  // namespace hfta::fusion::cuda
