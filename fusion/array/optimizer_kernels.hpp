#pragma once
/// The optimizers' inner loops over one slot's row of one parameter, on a CPU. Without torch.
///
/// Order of operations is that of torch.optim's single-tensor forms, and no product is contracted into a sum
/// (-ffp-contract=off), so that results do not depend on the vector width the machine has.

#include <cstddef>

#include "fusion/array/optimizer.hpp"

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

[[nodiscard]] double sum_of_squares(const SlotRow<float>& row);
[[nodiscard]] double sum_of_squares(const SlotRow<double>& row);

/// `factor` scales the gradient (clipping).
void sgd_row(const SlotRow<float>& row, const SlotStep& slot, double factor);
void sgd_row(const SlotRow<double>& row, const SlotStep& slot, double factor);
void adam_row(const SlotRow<float>& row, const SlotStep& slot, double factor, bool decoupled_decay);
void adam_row(const SlotRow<double>& row, const SlotStep& slot, double factor, bool decoupled_decay);

}  // namespace hfta::fusion
