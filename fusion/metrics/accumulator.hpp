#pragma once
/// Metrics of a whole set, summed batch by batch for c slots at once.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fusion/metric.hpp"

namespace hfta::fusion {

class StatisticSum;
enum class Statistic;

/// One evaluation of one chunk. A statistic that several metrics read is summed once per batch. Sums are float64, on
/// the device of the outputs; counts are exact, so that the result does not depend on how a set is cut into batches,
/// beyond the rounding of float64 sums.
///
/// A slot is NaN in every metric if one of its outputs is NaN at a position that counts, or if no position counts; no
/// slot's numbers depend on another's. Where else a metric is NaN, docs/metrics.md says.
///
/// One thread at a time may use it. With auroc or average_precision it keeps all outputs until it is destroyed.
class MetricAccumulator {
 public:
  /// `slots`: c, or 0 for one slot without a slot dimension. `ignore_index`: of class scores, targets that do not
  /// count. Throws Error{kConfig} if there is no such metric or it does not take outputs of that kind.
  MetricAccumulator(std::vector<MetricSpec> specs, OutputKind kind, int slots,
                    std::optional<std::int64_t> ignore_index = std::nullopt);
  MetricAccumulator(MetricAccumulator&&) noexcept;
  MetricAccumulator& operator=(MetricAccumulator&&) noexcept;
  ~MetricAccumulator();

  /// output and target [c, N, ...] or [N, ...], as OutputKind says; a target [N] beside an output [N, 1] means
  /// one column. Both are on the same device; neither is kept. Throws Error{kConfig} if their shapes do not go
  /// together.
  void add(const at::Tensor& output, const at::Tensor& target);

  /// Per slot, by recorded_name. Waits for the device. Throws Error{kInternal} if no batch was added, Error{kConfig} if
  /// a metric gives more than kMostMetricValues.
  [[nodiscard]] std::vector<std::map<std::string, double>> result() const;

 private:
  std::vector<MetricSpec> specs_;
  OutputKind kind_;
  int slots_;
  std::optional<std::int64_t> ignore_index_;
  std::vector<std::unique_ptr<StatisticSum>> sums_;
  at::Tensor positions_, nan_;  ///< [c]: float64, bool
};

}  // namespace hfta::fusion
