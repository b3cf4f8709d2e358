#pragma once
/// Cross entropy of classes in one pass over the logits each way, and what becomes of slots' losses. Without torch;
/// C++17.
///
/// Calls are as in slot_kernels.hpp: asynchronous on `stream`, with device pointers, fit for a CUDA graph; not in a
/// build without nvcc. Sums have one order, so that the same logits give the same bits.

#include <cstddef>
#include <cstdint>

namespace hfta::fusion::cuda {

/// Positions of c slots and their classes.
template <typename T>
struct Logits {
  const T* x;                   ///< [slots, positions, classes] row-major
  const std::int64_t* targets;  ///< [slots, positions]; a position whose target is `ignored` does not count
  std::size_t target_stride;    ///< From a slot's targets to the next one's: `positions`, or 0 where all have the same.
  std::int64_t ignored;
  int slots;
  std::size_t positions, classes;
  const double* smoothing;  ///< [slots], or null: `one` holds for all
  double one;
};

/// Writes for each position, with e its slot's smoothing and m = log sum exp x:
///     losses = (1 - e) (m - x[target]) + e / classes sum (m - x)         log_sums = m       counted = 1
/// and 0, m, 0 where it is ignored. NaN for a target that is no class.
void cross_entropy(const Logits<float>& logits, float* losses, float* log_sums, float* counted, void* stream);
void cross_entropy(const Logits<double>& logits, double* losses, double* log_sums, double* counted, void* stream);

/// Weight of each loss in the sum whose gradients are taken: weights [slots, positions], or, for a mean over positions,
/// weights[slot] / totals[slot].
template <typename T>
struct LossWeights {
  const T* weights;
  const T* totals;  ///< [slots]; null: by position
};

/// gradients [slots, positions, classes]: of the weighted sum of losses by the logits,
///     (exp(x - m) - (1 - e) [class is target] - e / classes) weight, and 0 where the position is ignored.
void cross_entropy_backward(const Logits<float>& logits, const float* log_sums, const LossWeights<float>& by,
                            float* gradients, void* stream);
void cross_entropy_backward(const Logits<double>& logits, const double* log_sums, const LossWeights<double>& by,
                            double* gradients, void* stream);

/// Numbers of `positions` positions of each slot, and how much each counts; [slots, positions] both.
template <typename T>
struct CountedLosses {
  const T *losses, *counted;
  int slots;
  std::size_t positions;
};

/// Doubles of workspace that loss_means wants.
[[nodiscard]] std::size_t loss_means_workspace(std::size_t positions, int slots);

/// By slot: totals = sum of `counted`, means = sum of `losses` / totals, which is NaN where nothing counts. Sums are
/// made in double and in parts, whose number follows from the positions alone.
void loss_means(const CountedLosses<float>& in, float* means, float* totals, double* workspace, void* stream);
void loss_means(const CountedLosses<double>& in, double* means, double* totals, double* workspace, void* stream);

/// Losses that a step adds to an epoch's sums.
template <typename T>
struct StepLosses {
  const T* losses;            ///< [slots]
  const T* weights;           ///< Slot b's weight is weights[b * weight_stride]; null: `samples`.
  std::size_t weight_stride;  ///< 1, or 0 where slots have one weight
  double samples;
  int slots;
};

/// sums [2, slots]: row 0 grows by loss times weight (by 0 where the weight is 0: such a batch has no mean), row 1 by
/// the weight.
void add_losses(const StepLosses<float>& step, double* sums, void* stream);
void add_losses(const StepLosses<double>& step, double* sums, void* stream);

}  // namespace hfta::fusion::cuda
