#include "search/sampler/gp/maximum.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "search/sampler/gp/minimum.hpp"

namespace hfta::search::gp {
namespace {

using Eigen::Index;

constexpr std::size_t kBest = 2;   // beginnings that are improved as the best of all
constexpr std::size_t kDrawn = 6;  // beginnings of the cube that are improved, drawn by their expected improvement
constexpr int kEvaluations = 60;   // evaluations of the gradient in one climb along the numbers
constexpr int kRounds = 3;         // rounds of numbers and steps in turn
constexpr int kNeighbours = 16;    // neighbours of each good place
constexpr Reach kReach = {-3, -0.5};
constexpr double kMoves[] = {0.2, 0.05, 0.01};

Matrix rows_of(const std::vector<Vector>& points, Index dimensions) {
  Matrix rows(static_cast<Index>(points.size()), dimensions);
  for (std::size_t i = 0; i < points.size(); ++i) rows.row(static_cast<Index>(i)) = points[i].transpose();
  return rows;
}

class Climb {
 public:
  Climb(const Inputs& inputs, const Acquisition& acquisition, const GivenNumbers& given)
      : inputs_(inputs), acquisition_(acquisition) {
    for (Index i = 0; i < inputs.size(); ++i) {
      if (std::any_of(given.begin(), given.end(), [i](const auto& one) { return one.first == i; })) continue;
      const Dimension& dimension = inputs.dimensions()[static_cast<std::size_t>(i)];
      if (!dimension.is_category() && dimension.options.empty()) smooth_.push_back(i);
      if (dimension.is_category() || dimension.rounds) stepped_.push_back(i);
    }
  }

  // Improves x, whose value is `value`.
  void run(Vector& x, double& value) const {
    for (int round = 0; round < kRounds; ++round) {
      const double before = value;
      along_numbers(x, value);
      if (stepped_.empty()) return;
      for (const Index i : stepped_) along(i, x, value);
      if (!(value > before + 1e-6)) return;
    }
  }

 private:
  void along_numbers(Vector& x, double& value) const {
    if (smooth_.empty()) return;
    const auto count = static_cast<Index>(smooth_.size());
    const auto f = [&](const Vector& part, Vector& slope) {
      Vector whole = x, gradient;
      for (Index i = 0; i < count; ++i) whole[smooth_[static_cast<std::size_t>(i)]] = part[i];
      const double at = acquisition_.at(whole, &gradient);
      for (Index i = 0; i < count; ++i) slope[i] = -gradient[smooth_[static_cast<std::size_t>(i)]];
      return -at;
    };
    Vector start(count);
    for (Index i = 0; i < count; ++i) start[i] = x[smooth_[static_cast<std::size_t>(i)]];
    const Minimum found = minimize(f, start, Vector::Zero(count), Vector::Ones(count), kEvaluations);
    Vector whole = x;
    for (Index i = 0; i < count; ++i) whole[smooth_[static_cast<std::size_t>(i)]] = found.x[i];
    take({inputs_.rounded(std::move(whole))}, x, value);
  }

  void along(Index i, Vector& x, double& value) const {
    const Dimension& dimension = inputs_.dimensions()[static_cast<std::size_t>(i)];
    std::vector<Vector> points;
    const auto add = [&](double at) {
      Vector moved = x;
      moved[i] = at;
      points.push_back(inputs_.rounded(std::move(moved)));
    };
    for (const double option : dimension.options) add(option);
    if (dimension.options.empty()) {
      const UnitScale::Part here = dimension.scale->part_of(dimension.scale->at(x[i]));
      const double step = here.to - here.from;
      for (const double move : {0.51 * step, step}) {
        add(x[i] - move);
        add(x[i] + move);
      }
      for (const double move : kMoves) {
        add(x[i] - move);
        add(x[i] + move);
      }
    }
    take(points, x, value);
  }

  // Replaces x by the best of `points`, if that is better.
  void take(const std::vector<Vector>& points, Vector& x, double& value) const {
    const Vector values = acquisition_.at(rows_of(points, inputs_.size()));
    Index best = 0;
    if (!(values.maxCoeff(&best) > value)) return;
    value = values[best];
    x = points[static_cast<std::size_t>(best)];
  }

  const Inputs& inputs_;
  const Acquisition& acquisition_;
  std::vector<Index> smooth_, stepped_;
};

// The places of `values`, largest first, NaN last; ties to the first.
std::vector<std::size_t> descending(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return values[a] > values[b] || (!std::isnan(values[a]) && std::isnan(values[b]));
  });
  return order;
}

// The best, then some of the first `cube`: drawn without replacement in proportion to the improvements whose logarithms
// `values` are (by Gumbel's noise), since the best often lie on one and the same hill.
std::vector<std::size_t> beginnings_of(const std::vector<double>& values, std::size_t cube, CountedRandom& random) {
  std::vector<std::size_t> chosen = descending(values);
  chosen.resize(std::min(kBest, chosen.size()));
  std::vector<double> keys(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(cube));
  for (double& key : keys) key -= std::log(-std::log1p(-random.uniform()));
  for (const std::size_t i : descending(keys)) {
    if (chosen.size() >= kBest + kDrawn) break;
    if (std::find(chosen.begin(), chosen.end(), i) == chosen.end()) chosen.push_back(i);
  }
  return chosen;
}

}  // namespace

std::vector<Vector> neighbours(const Inputs& inputs, const Matrix& good, const Reach& reach, CountedRandom& random) {
  const double share = std::max(0.3, 1.0 / static_cast<double>(inputs.size()));
  std::vector<Vector> points;
  for (Index row = 0; row < good.rows(); ++row) {
    for (int n = 0; n < kNeighbours; ++n) {
      Vector x = good.row(row).transpose();
      const double far = std::pow(10.0, reach.most + (reach.least - reach.most) * random.uniform());
      for (Index i = 0; i < x.size(); ++i) {
        const Dimension& dimension = inputs.dimensions()[static_cast<std::size_t>(i)];
        if (random.uniform() >= share) continue;
        if (dimension.is_category()) {
          x[i] = dimension.options[random.below(dimension.options.size())];
        } else {
          x[i] += far * random.normal();
        }
      }
      points.push_back(inputs.rounded(std::move(x)));
    }
  }
  return points;
}

std::optional<Vector> maximize(const Inputs& inputs, const Acquisition& acquisition, const Beginnings& beginnings,
                               const GivenNumbers& given, CountedRandom& random,
                               const std::function<bool(const Vector&)>& allowed) {
  std::vector<Vector> points;
  for (const std::vector<double>& point : beginnings.cube) points.push_back(inputs.from_cube(point));
  for (Vector& point : neighbours(inputs, beginnings.good, kReach, random)) points.push_back(std::move(point));
  for (Vector& point : points) {
    for (const auto& [dimension, number] : given) point[dimension] = number;
  }
  const Vector all = acquisition.at(rows_of(points, inputs.size()));
  const std::vector<double> values(all.data(), all.data() + all.size());
  const Climb climb(inputs, acquisition, given);
  std::optional<Vector> best;
  double highest = -std::numeric_limits<double>::infinity();
  const auto offer = [&](const Vector& x, double value) {
    if ((best && !(value > highest)) || !allowed(x)) return;
    best = x;
    highest = value;
  };
  for (const std::size_t i : beginnings_of(values, beginnings.cube.size(), random)) {
    Vector x = points[i];
    double value = values[i];
    climb.run(x, value);
    offer(x, value);
  }
  if (best) return best;
  // None of these is allowed: the best allowed point of all is taken.
  for (const std::size_t i : descending(values)) offer(points[i], values[i]);
  return best;
}

}  // namespace hfta::search::gp
