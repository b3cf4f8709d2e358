// How often the prediction is right.
#include <algorithm>
#include <cstddef>
#include <numeric>

#include "fusion/metrics/table/rows.hpp"

namespace hfta::fusion {
namespace {

std::vector<double> accuracy(const MetricSpec& /*spec*/, const SlotSums& sums) { return {sums.hits / sums.positions}; }

std::vector<double> top_k(const MetricSpec& spec, const SlotSums& sums) {
  const auto k = std::min(static_cast<std::size_t>(spec.k), sums.ranks.size());
  return {std::accumulate(sums.ranks.begin(), sums.ranks.begin() + static_cast<std::ptrdiff_t>(k), 0.0) /
          sums.positions};
}

}  // namespace

std::vector<MetricRow> hit_rows() {
  return {
      {.info = {.name = "accuracy",
                .sentence = "Share of right predictions: the class of the largest score, or yes or no.",
                .takes = kinds_of_classes(),
                .options = {},
                .larger_is_better = true},
       .reads = {Statistic::kHits},
       .values = accuracy,
       .recorded = "accuracy"},
      {.info =
           {.name = "top_k",
            .sentence = "Share of targets that are among the k classes of the largest scores.",
            .takes = {OutputKind::kClassScores},
            .options = {{.name = "k", .field = &MetricSpec::k, .sentence = "How many.", .least = 1, .averages = {}}},
            .larger_is_better = true},
       .reads = {Statistic::kRanks},
       .values = top_k,
       .recorded = "top"},
  };
}

}  // namespace hfta::fusion
