#pragma once
/// The optimizers' inner loops over one slot's row of one parameter, on a CPU. Without torch.
///
/// Results do not depend on the vector width that the machine has.

#include <array>
#include <cstddef>
#include <limits>
#include <optional>
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

/// One slot's numbers for a step, computed beforehand, as they lie in memory: for each group a Numbers<T> of the kind's
/// rule.
template <typename T>
class NumbersView {
 public:
  /// `bytes`: of these numbers, aligned as they want it; they have to outlive the view.
  NumbersView(OptimizerKind kind, std::span<const std::byte> bytes) : kind_(kind), bytes_(bytes) {}

  [[nodiscard]] OptimizerKind kind() const { return kind_; }
  /// By group. REQUIRES that Rule is the kind's rule.
  template <typename Rule>
  [[nodiscard]] std::span<const typename Rule::template Numbers<T>> of() const {
    using Own = typename Rule::template Numbers<T>;
    return {reinterpret_cast<const Own*>(bytes_.data()), bytes_.size() / sizeof(Own)};
  }

 private:
  OptimizerKind kind_;
  std::span<const std::byte> bytes_;
};

/// step_slot() with numbers at hand. `clip_norm`: as SlotStep's.
void step_slot(std::span<const SlotRow<float>> rows, const NumbersView<float>& numbers,
               std::optional<double> clip_norm);
void step_slot(std::span<const SlotRow<double>> rows, const NumbersView<double>& numbers,
               std::optional<double> clip_norm);

}  // namespace hfta::fusion
