#pragma once
/// A batch as metrics see it: outputs and targets of every slot, by positions. Internal to fusion/metrics.
///
/// Dimensions: c slots; M positions (N samples times the steps or pixels of one); C classes or K columns
/// (fusion/metrics/table/rows.hpp says what they are).

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "fusion/metric.hpp"

namespace hfta::fusion {

class MetricBatch {
 public:
  /// output [c, N, ...], target [c, N, ...]: fusion/metrics/accumulator.hpp. Throws Error{kConfig} if their shapes do
  /// not go together.
  MetricBatch(const at::Tensor& output, const at::Tensor& target, OutputKind kind,
              std::optional<std::int64_t> ignore_index);

  [[nodiscard]] OutputKind kind() const { return kind_; }
  [[nodiscard]] bool has_classes() const { return kind_ == OutputKind::kClassScores; }
  /// C or K.
  [[nodiscard]] std::int64_t width() const { return width_; }

  /// [c, M, C or K], the output's dtype; the output's memory where its strides allow, else a new copy.
  [[nodiscard]] at::Tensor scores() const;
  /// Targets: float64 of values, [c, M, K]. Else int64: classes [c, M], 0 where left out; yes (1), no (0) [c, M, K].
  [[nodiscard]] const at::Tensor& target() const { return target_; }
  /// Predictions, in the form of target(); undefined for values. The first class wins among equal scores.
  [[nodiscard]] const at::Tensor& predicted() const { return predicted_; }
  /// [c, M] or [c, M, K], float64: 1, or 0 where the target is left out.
  [[nodiscard]] const at::Tensor& weight() const { return weight_; }

  /// [c, C or K]: the weights of the positions that `labels` (as target()) says are of the class.
  [[nodiscard]] at::Tensor per_class(const at::Tensor& labels, const at::Tensor& weights) const;
  /// [c], float64: positions that count, of columns all of them.
  [[nodiscard]] at::Tensor positions() const { return weight_.flatten(1).sum(1); }
  /// [c], bool: whether an output is NaN at a position that counts.
  [[nodiscard]] at::Tensor has_nan() const;

 private:
  void read_classes(const at::Tensor& target, std::optional<std::int64_t> ignore_index);
  void read_columns(const at::Tensor& target);
  void read_values(const at::Tensor& target);

  OutputKind kind_;
  std::int64_t width_ = 1;
  at::Tensor output_;  ///< [c, N, ...]
  at::Tensor target_, predicted_, weight_;
  at::Tensor nan_;  ///< bool, of weight_'s shape
};

}  // namespace hfta::fusion
