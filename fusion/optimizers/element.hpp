#pragma once
/// Building blocks of update rules: arithmetic on one element of a parameter, and one slot's numbers for a step.
/// This header needs no torch; it is C++17 (nvcc).
///
/// A rule is a template over V, the type of an element: float and double in the CPU's loops and the GPU's kernels, and
/// a tensor over slots (eager/slot_tensor.hpp) wherever LibTorch has to do. Each V brings the functions below.
///
/// Operations, their order and where they round are those of torch.optim's single-tensor forms on ATen's kernels, which
/// multiply and add in one (fma). Files that include this are compiled with -ffp-contract=off, so that no other product
/// is contracted into a sum.

#include <cmath>
#include <cstdint>
#include <optional>

#include "base/both.hpp"
#include "fusion/optimizer.hpp"

namespace hfta::fusion {

/// Numbers of one slot for one step. Where parameters are in groups, a slot has one for each group, which differ in
/// `hyper` alone.
struct SlotStep {
  bool updates = false;   ///< False: weights and state stay as they are. The slot is empty, or adds up gradients
                          ///< of more batches.
  OptimizerHyper hyper;   ///< `lr` as scheduled for this step.
  std::int64_t step = 1;  ///< Number of this step, from 1 on, for bias correction.
  std::optional<double> clip_norm;
  std::optional<double> clip_weights;  ///< Afterwards weights are clamped to [-c, c].
};

namespace rules {

template <typename T>
HFTA_BOTH T fma(T a, T b, T c) {
  return std::fma(a, b, c);
}
template <typename T>
HFTA_BOTH T sqrt(T x) {
  return std::sqrt(x);
}
template <typename T>
HFTA_BOTH T abs(T x) {
  return std::abs(x);
}
/// The larger of two; NaN if one is.
template <typename T>
HFTA_BOTH T maximum(T a, T b) {
  return a > b || a != a ? a : b;
}
/// -1, 0 or 1; NaN of NaN, so that a slot that diverges shows it.
template <typename T>
HFTA_BOTH T sign(T x) {
  return x > T(0) ? T(1) : x < T(0) ? T(-1) : x;
}
template <typename T>
HFTA_BOTH T select(bool condition, T yes, T no) {
  return condition ? yes : no;
}

/// start + weight * (end - start), from the nearer end, as at::lerp.
template <typename V>
HFTA_BOTH V lerp(V start, V end, V weight) {
  const V way = end - start;
  return select(weight < V(0.5), fma(weight, way, start), fma(weight - V(1), way, end));
}

/// Weight decay in a step: the weight is multiplied by `shrink` (decoupled, as AdamW's), or `decay` times
/// the weight is added to the gradient.
inline double shrink(const OptimizerHyper& hyper, bool decoupled) {
  return decoupled ? 1 - hyper.lr * hyper.weight_decay : 1;
}
inline double decay(const OptimizerHyper& hyper, bool decoupled) { return decoupled ? 0 : hyper.weight_decay; }

/// 1 - beta^step, in double: in float the correction alone would cost 3e-5 of the step.
inline double bias_correction(double beta, std::int64_t step) { return 1 - std::pow(beta, static_cast<double>(step)); }

}  // namespace rules
}  // namespace hfta::fusion
