// Metrics that follow from the likelihood of the targets.
#include <cmath>

#include "fusion/metrics/table/rows.hpp"

namespace hfta::fusion {
namespace {

std::vector<double> perplexity(const MetricSpec& /*spec*/, const SlotSums& sums) {
  return {std::exp(sums.nll / sums.positions)};
}

}  // namespace

std::vector<MetricRow> likelihood_rows() {
  return {{.info = {.name = "perplexity",
                    .sentence = "exp of the mean negative log-likelihood of the targets, whatever the loss weighs.",
                    .takes = {OutputKind::kClassScores},
                    .options = {},
                    .larger_is_better = false},
           .reads = {Statistic::kNll},
           .values = perplexity,
           .recorded = "perplexity"}};
}

}  // namespace hfta::fusion
