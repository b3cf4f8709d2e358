#pragma once
/// The optimizers' inner loops over one slot's row of one parameter, on a CPU. Without torch.
///
/// No product is contracted into a sum (-ffp-contract=off), so that results do not depend on the vector width that the
/// machine has.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fusion/optimizers/rule.hpp"
#include "fusion/recipe.hpp"

namespace hfta::fusion {

/// Numbers of one slot for one step.
struct SlotStep {
  bool occupied = false;  ///< An empty slot's weights and state stay as they are.
  OptimizerHyper hyper;   ///< `lr` as scheduled for this step.
  std::int64_t step = 1;  ///< 1-based: of this step, for bias correction.
  std::optional<double> clip_norm;
};

/// One slot's part of a parameter: n contiguous elements each.
template <typename T>
struct SlotRow {
  T* weight;
  const T* gradient;
  T* first;
  T* second;
  std::size_t n;
};

/// Names of the state tensors of that kind, as torch.optim's state_dict has them.
[[nodiscard]] std::vector<const char*> state_names(OptimizerKind kind);

/// lr / (1 - beta1^t), in double: in float the correction alone would cost 3e-5 of the step.
[[nodiscard]] double adam_step_size(const SlotStep& slot);
/// sqrt(1 - beta2^t), in double.
[[nodiscard]] double adam_root_correction(const SlotStep& slot);

/// `factor` scales the gradient (clipping). T: float, double.
template <typename T>
[[nodiscard]] SgdNumbers<T> sgd_numbers(const SlotStep& slot, double factor);
template <typename T>
[[nodiscard]] AdamNumbers<T> adam_numbers(const SlotStep& slot, double factor, bool decoupled_decay);

/// One step of one slot, all its parameters' rows in place: one pass over memory, two if it is clipped.
void step_slot(OptimizerKind kind, std::span<const SlotRow<float>> rows, const SlotStep& slot);
void step_slot(OptimizerKind kind, std::span<const SlotRow<double>> rows, const SlotStep& slot);

/// The same with numbers at hand, of which `scale` is not read. `clip_norm`: negative for none.
void step_slot(std::span<const SlotRow<float>> rows, SgdNumbers<float> numbers, double clip_norm);
void step_slot(std::span<const SlotRow<double>> rows, SgdNumbers<double> numbers, double clip_norm);
void step_slot(std::span<const SlotRow<float>> rows, AdamNumbers<float> numbers, double clip_norm);
void step_slot(std::span<const SlotRow<double>> rows, AdamNumbers<double> numbers, double clip_norm);

}  // namespace hfta::fusion
