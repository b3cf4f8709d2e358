// Metrics that say which class is taken for which.
#include "fusion/metrics/table/rows.hpp"

namespace hfta::fusion {
namespace {

std::vector<double> confusion(const MetricSpec& /*spec*/, const SlotSums& sums) { return sums.confusion; }

}  // namespace

std::vector<MetricRow> confusion_rows() {
  return {{.info = {.name = "confusion_matrix",
                    .sentence = "How many targets of class i are predicted as class j.",
                    .takes = kinds_of_classes(),
                    .options = {},
                    .larger_is_better = std::nullopt},
           .reads = {Statistic::kConfusion},
           .values = confusion,
           .recorded = "confusion",
           .indices = 2}};
}

}  // namespace hfta::fusion
