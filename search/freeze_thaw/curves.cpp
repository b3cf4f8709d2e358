#include "search/freeze_thaw/curves.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <set>
#include <utility>

#include "search/sampler/gp/observations.hpp"

namespace hfta::search::freeze_thaw {
namespace {

using Eigen::Index;

constexpr std::size_t kEarliest = 10;  // trials that tell which values are usual

// Which epochs of a trial are seen, from dense to sparse.
enum class Density { kMany, kThree, kTwo };

int best_epoch(const Curve& curve) {
  const auto best = std::min_element(curve.values.begin(), curve.values.end());
  return static_cast<int>(best - curve.values.begin()) + 1;
}

std::set<int> epochs_of(const Curve& curve, Density density) {
  const int last = static_cast<int>(curve.values.size());
  std::set<int> epochs{best_epoch(curve), last};
  if (density != Density::kTwo) epochs.insert(1);
  if (density != Density::kMany) return epochs;
  for (int epoch = 1; epoch < last; epoch += std::max(1, epoch / 2)) epochs.insert(epoch);
  return epochs;
}

std::size_t count(const std::vector<const Curve*>& curves, Density density) {
  return std::accumulate(curves.begin(), curves.end(), std::size_t{0},
                         [&](std::size_t sum, const Curve* curve) { return sum + epochs_of(*curve, density).size(); });
}

// At most `most` curves, in order: the best make up half of them, the others are evenly spaced among the rest.
std::vector<const Curve*> some_of(std::vector<const Curve*> curves, std::size_t most) {
  if (curves.size() <= most) return curves;
  std::vector<std::size_t> order(curves.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return curves[a]->least() < curves[b]->least(); });
  const std::size_t good = most / 2, rest = most - good, others = order.size() - good;
  std::sort(order.begin() + static_cast<std::ptrdiff_t>(good), order.end());
  std::vector<std::size_t> kept(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(good));
  for (std::size_t i = 0; i < rest; ++i) kept.push_back(order[good + i * others / rest]);
  std::sort(kept.begin(), kept.end());
  std::vector<const Curve*> some;
  std::transform(kept.begin(), kept.end(), std::back_inserter(some), [&](std::size_t i) { return curves[i]; });
  return some;
}

}  // namespace

Curve curve_of(int trial, Vector x, const std::vector<double>& values, bool ended, trials::Goal goal) {
  Curve curve{trial, std::move(x), {}, ended, false};
  for (const double value : values) {
    if (!std::isfinite(value)) curve.failed = curve.ended = true;
    if (curve.failed) break;
    curve.values.push_back(goal == trials::Goal::kMinimize ? value : -value);
  }
  curve.failed |= ended && curve.values.empty();
  return curve;
}

bool has_no_curve(const SeenTrial& trial) {
  return trial.curve.empty() && trial.ended && *trial.ended != trials::State::kFail && !trial.values.empty();
}

CurveObservations observe(const std::vector<Curve>& curves, std::size_t most) {
  std::vector<const Curve*> seen;
  for (const Curve& curve : curves) {
    if (!curve.values.empty()) seen.push_back(&curve);
  }
  Density density = Density::kMany;
  if (count(seen, density) > most) density = Density::kThree;
  if (count(seen, density) > most) density = Density::kTwo;
  if (count(seen, density) > most) seen = some_of(std::move(seen), most / 2);
  const auto size = static_cast<Index>(count(seen, density));
  CurveObservations all{{Matrix(size, seen.empty() ? 0 : seen.front()->x.size()), Vector(size), {}}, Vector(size)};
  std::vector<double> values;
  std::size_t early = 0;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    for (const int epoch : epochs_of(*seen[i], density)) {
      const auto row = static_cast<Index>(values.size());
      all.points.x.row(row) = seen[i]->x.transpose();
      all.points.epochs[row] = epoch;
      all.points.trial.push_back(seen[i]->trial);
      values.push_back(seen[i]->values[static_cast<std::size_t>(epoch - 1)]);
    }
    if (i < kEarliest) early = values.size();
  }
  if (!values.empty()) all.y = gp::standardized(std::move(values), early);
  return all;
}

}  // namespace hfta::search::freeze_thaw
