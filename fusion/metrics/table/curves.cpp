// Areas under curves over all thresholds.
#include <cmath>
#include <cstddef>
#include <limits>

#include "fusion/metrics/table/rows.hpp"

namespace hfta::fusion {
namespace {

/// Classes whose curve is not defined have no part in a mean; NaN where no class has one.
std::vector<double> averaged(const MetricSpec& spec, const std::vector<double>& each,
                             const std::vector<double>& positives) {
  if (spec.average == Average::kNone) return each;
  double total = 0, weights = 0;
  for (std::size_t k = 0; k < each.size(); ++k) {
    if (std::isnan(each[k])) continue;
    const double weight = spec.average == Average::kWeighted ? positives[k] : 1;
    total += weight * each[k];
    weights += weight;
  }
  return {weights > 0 ? total / weights : std::numeric_limits<double>::quiet_NaN()};
}

std::vector<double> auroc(const MetricSpec& spec, const SlotSums& sums) {
  return averaged(spec, sums.roc_area, sums.positives);
}

std::vector<double> average_precision(const MetricSpec& spec, const SlotSums& sums) {
  return averaged(spec, sums.average_precision, sums.positives);
}

MetricRow row(const char* name, const char* sentence, decltype(MetricRow::values) values) {
  return {.info = {.name = name,
                   .sentence = sentence,
                   .takes = kinds_of_classes(),
                   .options = {{.name = "average",
                                .field = &MetricSpec::average,
                                .sentence = "What is made of the classes' areas.",
                                .averages = {Average::kMacro, Average::kWeighted, Average::kNone}}},
                   .larger_is_better = true,
                   .keeps_outputs = true},
          .reads = {Statistic::kCurves},
          .values = values,
          .recorded = name};
}

}  // namespace

std::vector<MetricRow> curve_rows() {
  return {
      row("auroc", "Area under the receiver operating characteristic; of several classes, each against the rest.",
          auroc),
      row("average_precision", "Mean of the precision at each threshold, weighted by the rise of recall.",
          average_precision),
  };
}

}  // namespace hfta::fusion
