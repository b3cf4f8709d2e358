#pragma once
/// The optimizers' inner loops over one slot's row of one parameter, on a CPU. Without torch.
///
/// No product is contracted into a sum (-ffp-contract=off), so that results do not depend on the vector width that the
/// machine has.

#include <cstddef>

#include "fusion/array/optimizer.hpp"
#include "fusion/array/optimizer_rule.hpp"

namespace hfta::fusion {

/// One slot's part of a parameter: n contiguous elements each.
template <typename T>
struct SlotRow {
  T* weight;
  const T* gradient;
  T* first;
  T* second;
  std::size_t n;
};

/// lr / (1 - beta1^t), in double: in float the correction alone would cost 3e-5 of the step.
[[nodiscard]] double adam_step_size(const SlotStep& slot);
/// sqrt(1 - beta2^t), in double.
[[nodiscard]] double adam_root_correction(const SlotStep& slot);

/// `factor` scales the gradient (clipping). T: float, double.
template <typename T>
[[nodiscard]] SgdNumbers<T> sgd_numbers(const SlotStep& slot, double factor);
template <typename T>
[[nodiscard]] AdamNumbers<T> adam_numbers(const SlotStep& slot, double factor, bool decoupled_decay);

[[nodiscard]] double sum_of_squares(const SlotRow<float>& row);
[[nodiscard]] double sum_of_squares(const SlotRow<double>& row);
void sgd_row(const SlotRow<float>& row, const SgdNumbers<float>& numbers);
void sgd_row(const SlotRow<double>& row, const SgdNumbers<double>& numbers);
void adam_row(const SlotRow<float>& row, const AdamNumbers<float>& numbers);
void adam_row(const SlotRow<double>& row, const AdamNumbers<double>& numbers);

}  // namespace hfta::fusion
