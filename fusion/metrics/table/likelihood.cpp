// Metrics that follow from the loss.
#include <cmath>

#include "fusion/metrics/table/rows.hpp"

namespace hfta::fusion {
namespace {

std::vector<double> perplexity(const MetricSpec& /*spec*/, const SlotSums& sums) { return {std::exp(sums.loss)}; }

}  // namespace

std::vector<MetricRow> likelihood_rows() {
  return {{.info = {.name = "perplexity",
                    .sentence = "exp of the mean loss, which is the negative log-likelihood.",
                    .takes = {OutputKind::kClassScores},
                    .options = {},
                    .larger_is_better = false},
           .reads = {},
           .values = perplexity,
           .recorded = "perplexity",
           .reads_loss = true}};
}

}  // namespace hfta::fusion
