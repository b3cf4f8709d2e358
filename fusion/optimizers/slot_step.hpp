#pragma once
/// The optimizers' inner loops over one slot's row of one parameter, on a CPU. Without torch.
///
/// Results do not depend on the vector width that the machine has.

#include <array>
#include <cstddef>
#include <limits>
#include <span>

#include "fusion/optimizers/rules.hpp"

namespace hfta::fusion {

/// One slot's part of a parameter: n contiguous elements each. States that the kind does not have are null.
template <typename T>
struct SlotRow {
  T* weight;
  const T* gradient;
  std::array<T*, kMostStates> states;
  std::size_t n;
  std::size_t group = 0;  ///< The parameter's group, which selects the slot's numbers.
};

/// Limit that the slot's weights are clamped to after the step: SlotStep::clip_weights; infinite for none.
[[nodiscard]] inline double weight_limit(const SlotStep& slot) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  return slot.updates ? slot.clip_weights.value_or(kNone) : kNone;
}

/// The sum of squares of a gradient's elements, in an order that nothing changes.
[[nodiscard]] double squares_of(std::span<const float> gradient);
[[nodiscard]] double squares_of(std::span<const double> gradient);

/// One step of one slot, all its parameters' rows in place: one pass over memory, two if it is clipped. `slot`: its
/// numbers by group. Clipping is over the rows of all groups, and that of weights by the first group's limit.
void step_slot(OptimizerKind kind, std::span<const SlotRow<float>> rows, std::span<const SlotStep> slot);
void step_slot(OptimizerKind kind, std::span<const SlotRow<double>> rows, std::span<const SlotStep> slot);

/// step_slot() with numbers at hand: a Numbers<T> of the kind's rule for each group. `clip_norm`: negative for none.
void step_slot(OptimizerKind kind, std::span<const SlotRow<float>> rows, const void* numbers, double clip_norm);
void step_slot(OptimizerKind kind, std::span<const SlotRow<double>> rows, const void* numbers, double clip_norm);

}  // namespace hfta::fusion
