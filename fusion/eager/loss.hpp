#pragma once
/// Losses and metrics, one number per slot.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fusion/eager/slot_numbers.hpp"
#include "fusion/recipe.hpp"

namespace hfta::fusion {

/// The mean loss of each slot over its batch, [c]; for one slot (`slots` 0) a scalar.
/// output: [c, N, ...] or [N, ...]; target: [c, N, ...] or [N, ...], class indices for cross_entropy, else of output's
/// shape. `smoothing`: label smoothing per slot (cross_entropy; one number where `slots` is 0). A slot's loss never
/// touches another's.
[[nodiscard]] at::Tensor slot_loss(Loss loss, const at::Tensor& output, const at::Tensor& target, int slots,
                                   const SlotNumbers& smoothing);

/// Has autograd fill the gradients of slot_loss's result, each slot's of its own loss, unscaled. Throws Error{kConfig}
/// if nothing trained has a part in it.
void backward(const at::Tensor& loss);

/// Running sums over a whole set, from which metrics are computed by their own definitions: the loss without label
/// smoothing (which is a means of training, and would make slots incomparable), r2 as scikit-learn's uniform average.
class MetricSums {
 public:
  /// `slots`: c, or 0 for one slot without a slot dimension.
  MetricSums(const Recipe& recipe, int slots);

  /// output, target: as in slot_loss.
  void add(const at::Tensor& output, const at::Tensor& target);
  /// Per slot, by name without prefix: "loss" and the recipe's metrics. Waits for the device.
  [[nodiscard]] std::vector<std::map<std::string, double>> result() const;

 private:
  [[nodiscard]] bool wants(Metric metric) const;

  Recipe recipe_;
  int slots_;
  std::int64_t samples_ = 0, elements_ = 0;
  at::Tensor loss_, correct_, absolute_;          ///< [c], float64
  at::Tensor squared_, target_, target_squared_;  ///< [c, K] per output column, float64; targets less origin_
  at::Tensor origin_;  ///< [c, 1, K]: the first target, near which squares cancel less; a constant one has spread 0.
};

}  // namespace hfta::fusion
