#include "search/sampler/gp/observations.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace hfta::search::gp {
namespace {

using trials::State;

struct Valued {
  const SeenTrial* trial;
  double value;
};

// The median; for an even number of values, the lower of the two in the middle.
double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

bool has_failed(const SeenTrial& trial) { return trial.ended == State::kFail || trial.values.empty(); }

double signed_value(const SeenTrial& trial, trials::Goal goal) {
  return goal == trials::Goal::kMinimize ? *trial.value() : -*trial.value();
}

// A pruned trial was found to be worse than others, so it does not count as better than half of those that were not.
std::vector<Valued> valued(const std::vector<const SeenTrial*>& ended, trials::Goal goal) {
  std::vector<double> complete;
  for (const SeenTrial* trial : ended) {
    if (!has_failed(*trial) && trial->ended == State::kComplete) complete.push_back(signed_value(*trial, goal));
  }
  std::vector<Valued> all;
  for (const SeenTrial* trial : ended) {
    if (has_failed(*trial)) continue;
    double value = signed_value(*trial, goal);
    if (trial->ended == State::kPruned && !complete.empty()) value = std::max(value, median(complete));
    all.push_back({trial, value});
  }
  return all;
}

std::vector<Valued> some_of(std::vector<Valued> all, std::size_t most) {
  if (all.size() <= most) return all;
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return all[a].value < all[b].value; });
  const std::size_t best = most / 2, rest = most - best, others = all.size() - best;
  std::sort(order.begin() + static_cast<std::ptrdiff_t>(best), order.end());
  std::vector<std::size_t> kept(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(best));
  for (std::size_t i = 0; i < rest; ++i) kept.push_back(order[best + i * others / rest]);
  std::sort(kept.begin(), kept.end());
  std::vector<Valued> some;
  for (const std::size_t i : kept) some.push_back(all[i]);
  return some;
}

Vector standardized_values(const std::vector<Valued>& all) {
  constexpr std::size_t kEarliest = 10;
  std::vector<double> values;
  for (const Valued& one : all) values.push_back(one.value);
  return standardized(std::move(values), std::min(kEarliest, all.size()));
}

Matrix rows_of(const Inputs& inputs, const std::vector<const SeenTrial*>& trials) {
  Matrix rows(static_cast<Eigen::Index>(trials.size()), inputs.size());
  for (std::size_t i = 0; i < trials.size(); ++i) {
    rows.row(static_cast<Eigen::Index>(i)) = inputs.vector_of(trials[i]->params).transpose();
  }
  return rows;
}

// At most `most` trials of a list, evenly spaced.
std::vector<const SeenTrial*> thinned(const std::vector<const SeenTrial*>& trials, std::size_t most) {
  if (trials.size() <= most) return trials;
  std::vector<const SeenTrial*> some;
  for (std::size_t i = 0; i < most; ++i) some.push_back(trials[i * trials.size() / most]);
  return some;
}

}  // namespace

// Differences are taken of halves, which cannot overflow. The earliest trials, which were drawn before anything was
// known, tell what is usual: the median of all sinks as the search closes in.
Vector standardized(std::vector<double> values, std::size_t early) {
  for (double& value : values) value /= 2;
  const double least = *std::min_element(values.begin(), values.end());
  for (double& value : values) value -= least;
  const auto end = values.begin() + static_cast<std::ptrdiff_t>(early);
  const double usual = std::max(median(values), median({values.begin(), end}));
  const double cap = usual > 0 ? 4 * std::min(usual, std::numeric_limits<double>::max() / 4) : usual;
  if (cap > 0) {
    for (double& value : values) value = std::min(value, cap);
  }
  const double largest = *std::max_element(values.begin(), values.end());
  Vector y = Vector::Zero(static_cast<Eigen::Index>(values.size()));
  if (largest <= 0) return y;
  for (Eigen::Index i = 0; i < y.size(); ++i) y[i] = values[static_cast<std::size_t>(i)] / largest;
  y.array() -= y.mean();
  return y / std::sqrt(y.squaredNorm() / static_cast<double>(y.size()));
}

Observations observe(const Inputs& inputs, const trials::Space& space, const History& history, trials::Goal goal,
                     std::size_t most) {
  std::vector<const SeenTrial*> ended, running;
  for (const SeenTrial& trial : history) {
    if (trial.params.size() == space.size()) (trial.ended ? ended : running).push_back(&trial);
  }
  Observations seen;
  const std::vector<Valued> values = some_of(valued(ended, goal), most);
  std::vector<const SeenTrial*> kept;
  for (const Valued& one : values) kept.push_back(one.trial);
  seen.x = rows_of(inputs, kept);
  if (!values.empty()) seen.y = standardized_values(values);
  const std::vector<const SeenTrial*> tried = thinned(ended, most);
  seen.tried = rows_of(inputs, tried);
  seen.sign = Vector(seen.tried.rows());
  for (std::size_t i = 0; i < tried.size(); ++i) {
    seen.sign[static_cast<Eigen::Index>(i)] = has_failed(*tried[i]) ? -1 : 1;
  }
  seen.running = rows_of(inputs, running);
  return seen;
}

}  // namespace hfta::search::gp
