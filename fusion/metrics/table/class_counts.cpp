// Shares of what is predicted or wanted, class by class.
#include <algorithm>
#include <cstddef>

#include "fusion/metrics/table/rows.hpp"

namespace hfta::fusion {
namespace {

/// Counts of one class, or of several together.
struct Counts {
  double both = 0, predicted = 0, wanted = 0;
};

Counts counts_of(const SlotSums& sums, std::size_t k) { return {sums.both[k], sums.predicted[k], sums.wanted[k]}; }

/// scikit-learn's zero_division=0.
double ratio(double over, double under) { return under > 0 ? over / under : 0; }

double precision(const Counts& c) { return ratio(c.both, c.predicted); }
double recall(const Counts& c) { return ratio(c.both, c.wanted); }
double f1(const Counts& c) { return ratio(2 * c.both, c.predicted + c.wanted); }
double iou(const Counts& c) { return ratio(c.both, c.predicted + c.wanted - c.both); }

/// A class that is neither wanted nor predicted has no part in a mean; a column always has.
std::vector<double> averaged(const MetricSpec& spec, const SlotSums& sums, double (*share)(const Counts&)) {
  Counts all;
  std::vector<double> each;
  double mean = 0, weighted = 0, present = 0;
  for (std::size_t k = 0; k < sums.both.size(); ++k) {
    const Counts c = counts_of(sums, k);
    all = {all.both + c.both, all.predicted + c.predicted, all.wanted + c.wanted};
    each.push_back(share(c));
    weighted += c.wanted * each.back();
    if (sums.kind == OutputKind::kClassScores && c.predicted + c.wanted == 0) continue;
    mean += each.back();
    present += 1;
  }
  switch (spec.average) {
    case Average::kMacro:
      return {mean / present};
    case Average::kMicro:
      return {share(all)};
    case Average::kWeighted:
      return {ratio(weighted, all.wanted)};
    case Average::kNone:
      break;
  }
  return each;
}

template <double (*share)(const Counts&)>
std::vector<double> values_of(const MetricSpec& spec, const SlotSums& sums) {
  return averaged(spec, sums, share);
}

/// The classes of a column are yes and no. As in scikit-learn, classes that no target has take no part in it.
std::vector<double> balanced_accuracy(const MetricSpec& /*spec*/, const SlotSums& sums) {
  const auto columns = static_cast<double>(sums.both.size());
  double total = 0, present = 0;
  const auto add = [&](const Counts& c) {
    if (c.wanted == 0) return;
    total += recall(c);
    present += 1;
  };
  for (std::size_t k = 0; k < sums.both.size(); ++k) {
    const Counts yes = counts_of(sums, k);
    add(yes);
    if (sums.kind == OutputKind::kClassScores) continue;
    const double n = sums.positions / columns;
    add({n - yes.predicted - yes.wanted + yes.both, n - yes.predicted, n - yes.wanted});
  }
  return {total / present};
}

template <double (*share)(const Counts&)>
MetricRow row(const char* name, const char* sentence) {
  return {.info = {.name = name,
                   .sentence = sentence,
                   .takes = kinds_of_classes(),
                   .options = {{.name = "average",
                                .field = &MetricSpec::average,
                                .sentence = "What is made of the classes' numbers.",
                                .averages = {Average::kMacro, Average::kMicro, Average::kWeighted, Average::kNone}}},
                   .larger_is_better = true},
          .reads = {Statistic::kClassCounts},
          .values = values_of<share>,
          .recorded = name};
}

}  // namespace

std::vector<MetricRow> class_rows() {
  return {
      row<precision>("precision", "Share of the predictions of a class that are right."),
      row<recall>("recall", "Share of the targets of a class that are found."),
      row<f1>("f1", "Harmonic mean of precision and recall."),
      row<iou>("mean_iou", "Intersection of prediction and target over their union (Jaccard index)."),
      {.info = {.name = "balanced_accuracy",
                .sentence = "Mean recall of the classes that are among the targets; of yes and no too.",
                .takes = kinds_of_classes(),
                .options = {},
                .larger_is_better = true},
       .reads = {Statistic::kClassCounts},
       .values = balanced_accuracy,
       .recorded = "balanced_accuracy"},
  };
}

}  // namespace hfta::fusion
