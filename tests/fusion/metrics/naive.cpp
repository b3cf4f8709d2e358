#include "tests/fusion/metrics/naive.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <vector>

namespace hfta::fusion::testing {
namespace {

using Row = std::vector<double>;
using Values = std::map<std::string, double>;

std::vector<Row> rows_of(const at::Tensor& t) {
  const at::Tensor plain = t.to(at::kDouble).contiguous();
  std::vector<Row> rows;
  for (std::int64_t i = 0; i < plain.size(0); ++i) {
    const double* begin = plain.data_ptr<double>() + i * plain.size(1);
    rows.emplace_back(begin, begin + plain.size(1));
  }
  return rows;
}

/// A class against the rest, or a column.
struct Binary {
  Row scores;
  std::vector<bool> yes, predicted;

  double count(bool y, bool p) const {
    double n = 0;
    for (std::size_t i = 0; i < yes.size(); ++i) n += yes[i] == y && predicted[i] == p ? 1 : 0;
    return n;
  }
  double wanted() const { return count(true, true) + count(true, false); }

  // The share of pairs that are in the right order; ties count half.
  double auroc() const {
    double right = 0, pairs = 0;
    for (std::size_t i = 0; i < yes.size(); ++i) {
      for (std::size_t j = 0; j < yes.size(); ++j) {
        if (!yes[i] || yes[j]) continue;
        pairs += 1;
        right += scores[i] > scores[j] ? 1 : scores[i] == scores[j] ? 0.5 : 0;
      }
    }
    return right / pairs;
  }

  // The mean over positives of the precision at their own score.
  double average_precision() const {
    double sum = 0, positives = 0;
    for (std::size_t i = 0; i < yes.size(); ++i) {
      if (!yes[i]) continue;
      double above = 0, right = 0;
      for (std::size_t j = 0; j < yes.size(); ++j) {
        if (scores[j] < scores[i]) continue;
        above += 1;
        right += yes[j] ? 1 : 0;
      }
      sum += right / above;
      positives += 1;
    }
    return sum / positives;
  }
};

double ratio(double a, double b) { return b == 0 ? 0 : a / b; }

void add_averages(const std::string& name, const Row& each, const Row& weights, const std::vector<bool>& counted,
                  Values& found) {
  double sum = 0, n = 0, weighted = 0, weight = 0;
  for (std::size_t k = 0; k < each.size(); ++k) {
    found[fmt::format("{}_{}", name, k)] = each[k];
    if (!counted[k]) continue;
    sum += each[k];
    n += 1;
    weighted += weights[k] * each[k];
    weight += weights[k];
  }
  found[name] = n > 0 ? sum / n : std::nan("");
  found[name + "_weighted"] = n > 0 ? ratio(weighted, weight) : std::nan("");
}

// `columns`: a class that does not occur counts all the same.
Values of_binaries(const std::vector<Binary>& all, bool columns) {
  struct Share {
    double (*of)(double tp, double fp, double fn);
    const char* name;
  };
  const std::vector<Share> shares = {
      {[](double tp, double fp, double) { return ratio(tp, tp + fp); }, "precision"},
      {[](double tp, double, double fn) { return ratio(tp, tp + fn); }, "recall"},
      {[](double tp, double fp, double fn) { return ratio(2 * tp, 2 * tp + fp + fn); }, "f1"},
      {[](double tp, double fp, double fn) { return ratio(tp, tp + fp + fn); }, "mean_iou"}};
  Values found;
  Row weights, roc, precision;
  std::vector<bool> has_roc, has_precision;
  for (const Binary& b : all) {
    weights.push_back(b.wanted());
    roc.push_back(b.auroc());
    precision.push_back(b.average_precision());
    has_roc.push_back(!std::isnan(roc.back()));
    has_precision.push_back(!std::isnan(precision.back()));
  }
  add_averages("auroc", roc, weights, has_roc, found);
  add_averages("average_precision", precision, weights, has_precision, found);
  for (const Share& share : shares) {
    Row each;
    std::vector<bool> counted;
    double tp = 0, fp = 0, fn = 0;
    for (const Binary& b : all) {
      each.push_back(share.of(b.count(true, true), b.count(false, true), b.count(true, false)));
      counted.push_back(columns || b.wanted() + b.count(false, true) > 0);
      tp += b.count(true, true);
      fp += b.count(false, true);
      fn += b.count(true, false);
    }
    add_averages(share.name, each, weights, counted, found);
    found[share.name + std::string("_micro")] = share.of(tp, fp, fn);
  }
  return found;
}

}  // namespace

Values naive_classes(const at::Tensor& scores, const at::Tensor& target) {
  const std::vector<Row> rows = rows_of(scores), softmax = rows_of(at::softmax(scores.to(at::kDouble), 1)),
                         wanted = rows_of(target.unsqueeze(1));
  const std::size_t classes = rows[0].size();
  const auto n = static_cast<double>(rows.size());
  std::vector<Binary> all(classes);
  Values counts;
  double nll = 0;
  for (std::size_t a = 0; a < classes; ++a) {
    for (std::size_t b = 0; b < classes; ++b) counts[fmt::format("confusion_{}_{}", a, b)] = 0;
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto t = static_cast<std::size_t>(wanted[i][0]);
    nll -= std::log(softmax[i][t]);
    std::size_t first = 0, ahead = 0;
    for (std::size_t k = 0; k < classes; ++k) {
      if (rows[i][k] > rows[i][first]) first = k;
      ahead += rows[i][k] > rows[i][t] || (rows[i][k] == rows[i][t] && k < t) ? 1 : 0;
    }
    for (std::size_t k = 0; k < classes; ++k) {
      all[k].scores.push_back(softmax[i][k]);
      all[k].yes.push_back(t == k);
      all[k].predicted.push_back(first == k);
    }
    counts[fmt::format("confusion_{}_{}", t, first)] += 1;
    counts["accuracy"] += first == t ? 1 / n : 0;
    for (std::size_t k = 1; k <= 3; ++k) counts[fmt::format("top_{}", k)] += ahead < k ? 1 / n : 0;
  }
  Values found = of_binaries(all, false);
  found["perplexity"] = std::exp(nll / n);
  double recalls = 0, present = 0;
  for (std::size_t k = 0; k < classes; ++k) {
    if (all[k].wanted() == 0) continue;
    recalls += found[fmt::format("recall_{}", k)];
    present += 1;
  }
  found["balanced_accuracy"] = recalls / present;
  found.merge(counts);
  return found;
}

Values naive_columns(const at::Tensor& scores, const at::Tensor& yes, double threshold) {
  const std::vector<Row> rows = rows_of(scores), wanted = rows_of(yes);
  std::vector<Binary> all(rows[0].size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t k = 0; k < all.size(); ++k) {
      all[k].scores.push_back(rows[i][k]);
      all[k].yes.push_back(wanted[i][k] > 0);
      all[k].predicted.push_back(rows[i][k] > threshold);
    }
  }
  Values found = of_binaries(all, true);
  double recalls = 0, present = 0;
  for (const bool y : {false, true}) {
    for (const bool p : {false, true}) {
      double& n = found[fmt::format("confusion_{}_{}", int{y}, int{p})];
      for (const Binary& b : all) n += b.count(y, p);
    }
    for (const Binary& b : all) {
      const double all_of_it = b.count(y, true) + b.count(y, false);
      if (all_of_it == 0) continue;
      recalls += b.count(y, y) / all_of_it;
      present += 1;
    }
  }
  found["balanced_accuracy"] = recalls / present;
  found["accuracy"] = (found["confusion_0_0"] + found["confusion_1_1"]) / static_cast<double>(rows.size() * all.size());
  return found;
}

Values naive_values(const at::Tensor& output, const at::Tensor& target) {
  const std::vector<Row> rows = rows_of(output), wanted = rows_of(target);
  const std::size_t n = rows.size(), columns = rows[0].size();
  const auto all = static_cast<double>(n * columns);
  Values found;
  for (std::size_t k = 0; k < columns; ++k) {
    double squared = 0, mean = 0, spread = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double error = rows[i][k] - wanted[i][k];
      squared += error * error;
      mean += wanted[i][k] / static_cast<double>(n);
      found["mae"] += std::abs(error) / all;
      found["mape"] += std::abs(error) / std::max(std::abs(wanted[i][k]), std::numeric_limits<double>::epsilon()) / all;
    }
    for (std::size_t i = 0; i < n; ++i) spread += (wanted[i][k] - mean) * (wanted[i][k] - mean);
    found["mse"] += squared / all;
    found["rmse"] += std::sqrt(squared / static_cast<double>(n)) / static_cast<double>(columns);
    found["r2"] += (1 - squared / spread) / static_cast<double>(columns);
  }
  return found;
}

}  // namespace hfta::fusion::testing
