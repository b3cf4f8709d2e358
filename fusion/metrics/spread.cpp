#include <ATen/ATen.h>

#include "fusion/metrics/statistic.hpp"

namespace hfta::fusion {
namespace {

/// Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances" (1979), on
/// targets less the first one: a constant target has spread 0, whatever its sums round to.
class Spread final : public StatisticSum {
 public:
  void add(const MetricBatch& batch) override {
    const at::Tensor& rows = batch.target();
    if (rows.size(1) == 0) return;
    if (!first_.defined()) {
      first_ = rows.narrow(1, 0, 1).clone();
      mean_ = at::zeros_like(first_.squeeze(1));
      spread_ = at::zeros_like(mean_);
    }
    const auto before = static_cast<double>(rows_), added = static_cast<double>(rows.size(1));
    const at::Tensor moved = rows - first_, mean = moved.mean(1), apart = mean - mean_;
    const at::Tensor own = (moved - mean.unsqueeze(1)).square().sum(1);
    spread_ = spread_ + own + apart.square() * (before * added / (before + added));
    mean_ = mean_ + apart * (added / (before + added));
    rows_ += rows.size(1);
  }

  void write(std::vector<SlotSums>& slots) const override { write_rows(spread_, &SlotSums::spread, slots); }

 private:
  std::int64_t rows_ = 0;
  at::Tensor first_;          ///< [c, 1, K]
  at::Tensor mean_, spread_;  ///< [c, K], float64; the mean less first_
};

}  // namespace

std::unique_ptr<StatisticSum> make_spread() { return std::make_unique<Spread>(); }

}  // namespace hfta::fusion
