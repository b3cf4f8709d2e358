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

// `at` counts positions over all slots.
template <typename T>
__device__ std::int64_t target_of(const Logits<T>& logits, unsigned slot, std::size_t at) {
  return logits.targets[slot * logits.target_stride + (at - slot * logits.positions)];
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
    const std::int64_t target = target_of(logits, slot, at);
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
__global__ void cross_entropy_backward_kernel(Logits<T> logits, const T* log_sums, LossWeights<T> by, T* gradients) {
  for_rows(logits.positions, [&](unsigned slot, std::size_t at, unsigned lane) {
    const T* __restrict__ row = logits.x + at * logits.classes;
    T* __restrict__ out = gradients + at * logits.classes;
    const std::int64_t target = target_of(logits, slot, at);
    const T e = smoothing_of(logits, slot), others = e / static_cast<T>(logits.classes);
    const T log_sum = log_sums[at], weight = by.totals != nullptr ? by.weights[slot] / by.totals[slot] : by.weights[at];
    for (std::size_t k = lane; k < logits.classes; k += kLanes) {
      const T own = static_cast<std::int64_t>(k) == target ? 1 - e : T{0};
      out[k] = target == logits.ignored ? T{0} : (std::exp(row[k] - log_sum) - own - others) * weight;
    }
  });
}

// Parts of a slot's positions; one if there are no positions, which gives their mean.
__host__ __device__ inline Parts parts_of_positions(std::size_t positions) {
  const Parts parts = parts_of(positions, 16 * kThreads);
  return {parts.rows, parts.number > 0 ? parts.number : 1};
}

// Called by thread 0, which has the sums.
template <typename T>
__device__ void set_mean(double losses, double counted, T* means, T* totals) {
  totals[blockIdx.y] = static_cast<T>(counted);
  means[blockIdx.y] = static_cast<T>(losses / counted);
}

// x over parts, y over slots. Sums of each part to `workspace`, [slots, parts, 2]; of the only one to their place.
template <typename T>
__global__ void loss_sums_kernel(CountedLosses<T> in, double* workspace, T* means, T* totals) {
  const std::size_t part = parts_of_positions(in.positions).rows, begin = blockIdx.x * part;
  const std::size_t end = begin + part < in.positions ? begin + part : in.positions, row = blockIdx.y * in.positions;
  double losses = 0, counted = 0;
  for (std::size_t i = begin + threadIdx.x; i < end; i += kThreads) {
    losses += static_cast<double>(in.losses[row + i]);
    counted += static_cast<double>(in.counted[row + i]);
  }
  losses = sum_of_block(losses);
  counted = sum_of_block(counted);
  if (threadIdx.x != 0) return;
  if (gridDim.x == 1) return set_mean(losses, counted, means, totals);
  double* const to = workspace + 2 * (static_cast<std::size_t>(blockIdx.y) * gridDim.x + blockIdx.x);
  to[0] = losses;
  to[1] = counted;
}

// A block a slot.
template <typename T>
__global__ void loss_means_kernel(std::size_t parts, const double* workspace, T* means, T* totals) {
  const double* const from = workspace + 2 * blockIdx.y * parts;
  const bool has = threadIdx.x < parts;  // kMostParts are as many as threads
  const double losses = sum_of_block(has ? from[2 * threadIdx.x] : 0);
  const double counted = sum_of_block(has ? from[2 * threadIdx.x + 1] : 0);
  if (threadIdx.x == 0) set_mean(losses, counted, means, totals);
}

template <typename T>
__global__ void add_losses_kernel(StepLosses<T> step, double* sums) {
  const unsigned slots = static_cast<unsigned>(step.slots), stride = gridDim.x * kThreads;
  for (unsigned b = blockIdx.x * kThreads + threadIdx.x; b < slots; b += stride) {
    const double weight =
        step.weights != nullptr ? static_cast<double>(step.weights[b * step.weight_stride]) : step.samples;
    if (weight != 0) sums[b] += static_cast<double>(step.losses[b]) * weight;
    sums[slots + b] += weight;
  }
}

template <typename T>
void launch_means(const CountedLosses<T>& in, T* means, T* totals, double* workspace, void* stream) {
  if (in.slots == 0) return;
  const std::size_t parts = parts_of_positions(in.positions).number;
  const auto slots = static_cast<unsigned>(in.slots);
  launch("sums of losses", loss_sums_kernel<T>, dim3(static_cast<unsigned>(parts), slots, 1), stream, in, workspace,
         means, totals);
  if (parts == 1) return;
  launch("means of losses", loss_means_kernel<T>, dim3(1, slots, 1), stream, parts, workspace, means, totals);
}

template <typename T>
void launch_add(const StepLosses<T>& step, double* sums, void* stream) {
  if (step.slots == 0) return;
  launch("losses of an epoch", add_losses_kernel<T>, grid_for(static_cast<std::size_t>(step.slots), 1), stream, step,
         sums);
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
void launch_backward(const Logits<T>& logits, const T* log_sums, const LossWeights<T>& by, T* gradients, void* stream) {
  if (empty(logits)) return;
  launch("cross entropy's gradient", cross_entropy_backward_kernel<T>, grid_of_rows(logits.positions, logits.slots),
         stream, logits, log_sums, by, gradients);
}

}  // namespace

void cross_entropy(const Logits<float>& logits, float* losses, float* log_sums, float* counted, void* stream) {
  launch_forward(logits, losses, log_sums, counted, stream);
}
void cross_entropy(const Logits<double>& logits, double* losses, double* log_sums, double* counted, void* stream) {
  launch_forward(logits, losses, log_sums, counted, stream);
}
void cross_entropy_backward(const Logits<float>& logits, const float* log_sums, const LossWeights<float>& by,
                            float* gradients, void* stream) {
  launch_backward(logits, log_sums, by, gradients, stream);
}
void cross_entropy_backward(const Logits<double>& logits, const double* log_sums, const LossWeights<double>& by,
                            double* gradients, void* stream) {
  launch_backward(logits, log_sums, by, gradients, stream);
}

std::size_t loss_means_workspace(std::size_t positions, int slots) {
  return 2 * parts_of_positions(positions).number * static_cast<std::size_t>(slots);
}
void loss_means(const CountedLosses<float>& in, float* means, float* totals, double* workspace, void* stream) {
  launch_means(in, means, totals, workspace, stream);
}
void loss_means(const CountedLosses<double>& in, double* means, double* totals, double* workspace, void* stream) {
  launch_means(in, means, totals, workspace, stream);
}

void add_losses(const StepLosses<float>& step, double* sums, void* stream) { launch_add(step, sums, stream); }
void add_losses(const StepLosses<double>& step, double* sums, void* stream) { launch_add(step, sums, stream); }

}  // namespace hfta::fusion::cuda
