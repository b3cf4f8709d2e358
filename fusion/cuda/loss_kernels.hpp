#pragma once
/// Cross entropy of classes in one pass over the logits each way. Without torch; C++17.
///
/// As slot_kernels.hpp: asynchronous on `stream`, pointers to device memory, and so fit for a CUDA graph; not in a
/// build without nvcc. Sums have one order, so that the same logits give the same bits.

#include <cstddef>
#include <cstdint>

namespace hfta::fusion::cuda {

/// Positions of c slots and their classes.
template <typename T>
struct Logits {
  const T* x;                   ///< [slots, positions, classes] row-major
  const std::int64_t* targets;  ///< [slots, positions]; a position whose target is `ignored` does not count
  std::int64_t ignored;
  int slots;
  std::size_t positions, classes;
  const double* smoothing;  ///< [slots], or null: `one` holds for all
  double one;
};

/// For each position, with e its slot's smoothing and m = log sum exp x:
///     losses = (1 - e) (m - x[target]) + e / classes sum (m - x)         log_sums = m       counted = 1
/// and 0, m, 0 where it is ignored. NaN for a target that is no class.
void cross_entropy(const Logits<float>& logits, float* losses, float* log_sums, float* counted, void* stream);
void cross_entropy(const Logits<double>& logits, double* losses, double* log_sums, double* counted, void* stream);

/// gradients [slots, positions, classes]: of the sum of losses times `weights` [slots, positions] by the logits,
///     (exp(x - m) - (1 - e) [class is target] - e / classes) weight, and 0 where the position is ignored.
void cross_entropy_backward(const Logits<float>& logits, const float* log_sums, const float* weights, float* gradients,
                            void* stream);
void cross_entropy_backward(const Logits<double>& logits, const double* log_sums, const double* weights,
                            double* gradients, void* stream);

}  // namespace hfta::fusion::cuda
