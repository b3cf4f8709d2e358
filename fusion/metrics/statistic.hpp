#pragma once
/// Statistics of a whole set, summed batch by batch on the device. Internal to fusion/metrics.

#include <memory>
#include <vector>

#include "fusion/metrics/batch.hpp"
#include "fusion/metrics/table/rows.hpp"

namespace hfta::fusion {

/// One Statistic of every slot. Sums are float64, [c, ...]; no operation sees two slots.
class StatisticSum {
 public:
  StatisticSum() = default;
  StatisticSum(const StatisticSum&) = delete;
  StatisticSum& operator=(const StatisticSum&) = delete;
  virtual ~StatisticSum() = default;

  virtual void add(const MetricBatch& batch) = 0;
  /// Sets its fields of each slot. Waits for the device. At least one batch has been added.
  virtual void write(std::vector<SlotSums>& slots) const = 0;
};

[[nodiscard]] std::unique_ptr<StatisticSum> make_sum(Statistic statistic);

/// Outputs and targets themselves, of which areas under curves are made when all are known.
[[nodiscard]] std::unique_ptr<StatisticSum> make_curves();
/// Spread of targets around their mean.
[[nodiscard]] std::unique_ptr<StatisticSum> make_spread();

/// Field of a slot: one number, or one per class or column.
void set(double& field, const at::Tensor& row);
void set(std::vector<double>& field, const at::Tensor& row);

/// Each slot's row of sums [c, ...].
template <typename Field>
void write_rows(const at::Tensor& sums, Field SlotSums::*field, std::vector<SlotSums>& slots) {
  const at::Tensor host = sums.cpu();
  for (std::size_t b = 0; b < slots.size(); ++b) set(slots[b].*field, host[static_cast<std::int64_t>(b)]);
}

}  // namespace hfta::fusion
