#pragma once
/// The rows of the table of metrics: which statistics of a whole set each reads, and what it makes of them. Internal to
/// fusion/metrics.

#include <cstdint>
#include <vector>

#include "fusion/metric.hpp"

namespace hfta::fusion {

/// A statistic that is summed over a set while it is evaluated, once for all metrics that read it.
enum class Statistic {
  kHits,         ///< hits
  kRanks,        ///< ranks
  kNll,          ///< nll
  kClassCounts,  ///< both, predicted, wanted
  kConfusion,    ///< confusion
  kCurves,       ///< roc_area, average_precision, positives
  kSquares,      ///< squared
  kSpread,       ///< spread
  kAbsolute,     ///< absolute
  kPercentage,   ///< percentage
  kLast = kPercentage
};

/// One slot's statistics of a whole set. Those that no metric reads are empty. A position is what has one target: a
/// sample, or a step or pixel of one; of class scores, less those that are left out.
///
/// Per class of class scores, per column else: of logits, probabilities and margins [N, K, ...] there are K, of values
/// one for every number of a sample.
struct SlotSums {
  OutputKind kind = OutputKind::kValue;
  double positions = 0;  ///< Positions; with columns, numbers of all columns.

  double hits = 0;  ///< Positions whose prediction is right.
  std::vector<double>
      ranks;  ///< [C] positions at which r classes are ahead of the target. Of equal scores the first is.

  double nll = 0;  ///< Sum of negative log-likelihoods of the targets, the scores being logits.

  std::vector<double> both;       ///< Positions whose target and prediction are of the class (of a column: yes).
  std::vector<double> predicted;  ///< Positions whose prediction is.
  std::vector<double> wanted;     ///< Positions whose target is.

  std::vector<double> confusion;  ///< [C, C] positions by target and prediction; of columns [2, 2], all columns'.

  std::vector<double> roc_area;           ///< NaN: no target of the class, or none of another.
  std::vector<double> average_precision;  ///< NaN: no target of the class.
  std::vector<double> positives;          ///< Targets of the class.

  std::vector<double> squared;  ///< Sums of squared errors.
  std::vector<double> spread;   ///< Sums of squared distances of targets from their mean.
  double absolute = 0;          ///< Sum of absolute errors, all columns'.
  double percentage = 0;        ///< Sum of absolute errors over the targets' size.
};

struct MetricRow {
  MetricInfo info;
  std::vector<Statistic> reads;
  /// One value, or one per class, or C * C: for each value of the indices (index_count), the last one fastest.
  std::vector<double> (*values)(const MetricSpec& spec, const SlotSums& sums);
  const char* recorded;  ///< The beginning of recorded names.
  int indices = 0;       ///< Numbers that a recorded name ends with, besides the class of average none.
};

[[nodiscard]] const std::vector<MetricRow>& metric_rows();
/// Throws Error{kConfig} if there is none.
[[nodiscard]] const MetricRow& row_of(const MetricSpec& spec);

// Rows of one family each.
[[nodiscard]] std::vector<MetricRow> hit_rows();
[[nodiscard]] std::vector<MetricRow> class_rows();
[[nodiscard]] std::vector<MetricRow> curve_rows();
[[nodiscard]] std::vector<MetricRow> likelihood_rows();
[[nodiscard]] std::vector<MetricRow> error_rows();
[[nodiscard]] std::vector<MetricRow> confusion_rows();

/// All kinds but values.
[[nodiscard]] std::vector<OutputKind> kinds_of_classes();

}  // namespace hfta::fusion
