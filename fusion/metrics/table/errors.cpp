// How far values are off.
#include <cmath>
#include <cstddef>

#include "fusion/metrics/table/rows.hpp"

namespace hfta::fusion {
namespace {

double total(const std::vector<double>& columns) {
  double sum = 0;
  for (const double column : columns) sum += column;
  return sum;
}

std::vector<double> mse(const MetricSpec& /*spec*/, const SlotSums& sums) {
  return {total(sums.squared) / sums.positions};
}

// scikit-learn's uniform average: of the columns' roots, not the root of the mean.
std::vector<double> rmse(const MetricSpec& /*spec*/, const SlotSums& sums) {
  const auto columns = static_cast<double>(sums.squared.size());
  double roots = 0;
  for (const double squared : sums.squared) roots += std::sqrt(squared * columns / sums.positions);
  return {roots / columns};
}

std::vector<double> mae(const MetricSpec& /*spec*/, const SlotSums& sums) { return {sums.absolute / sums.positions}; }

std::vector<double> mape(const MetricSpec& /*spec*/, const SlotSums& sums) {
  return {sums.percentage / sums.positions};
}

// scikit-learn's uniform average. Of a constant target: 1 if it is predicted exactly, else 0.
std::vector<double> r2(const MetricSpec& /*spec*/, const SlotSums& sums) {
  double each = 0;
  for (std::size_t k = 0; k < sums.squared.size(); ++k) {
    const double exact = sums.squared[k] == 0 ? 1 : 0;
    each += sums.spread[k] > 0 ? 1 - sums.squared[k] / sums.spread[k] : exact;
  }
  return {each / static_cast<double>(sums.squared.size())};
}

MetricRow row(const char* name, const char* sentence, std::vector<Statistic> reads, decltype(MetricRow::values) values,
              bool larger_is_better = false) {
  return {.info = {.name = name,
                   .sentence = sentence,
                   .takes = {OutputKind::kValue},
                   .options = {},
                   .larger_is_better = larger_is_better},
          .reads = std::move(reads),
          .values = values,
          .recorded = name};
}

}  // namespace

std::vector<MetricRow> error_rows() {
  return {
      row("mse", "Mean squared error.", {Statistic::kSquares}, mse),
      row("rmse", "Root of the mean squared error; of several columns, the mean of their roots.", {Statistic::kSquares},
          rmse),
      row("mae", "Mean absolute error.", {Statistic::kAbsolute}, mae),
      row("mape", "Mean absolute error over the target's size; 0.5 is half of it.", {Statistic::kPercentage}, mape),
      row("r2", "Share of the targets' variance that is explained; mean over columns.",
          {Statistic::kSquares, Statistic::kSpread}, r2, true),
  };
}

}  // namespace hfta::fusion
