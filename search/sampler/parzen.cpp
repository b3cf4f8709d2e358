#include "search/sampler/parzen.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <utility>

#include "search/choices.hpp"

namespace hfta::search {
namespace {

constexpr std::size_t kFull = 25;  // observations of full weight

// Weights of kernels: if there are many, the first count less. The kernel of the whole space counts as one more.
std::vector<double> weights_of(std::size_t observed) {
  std::vector<double> weights(observed + 1, 1.0);
  const std::size_t old = observed > kFull ? observed - kFull : 0;
  const double least = observed > 0 ? 1.0 / static_cast<double>(observed) : 1.0;
  for (std::size_t i = 0; i < old; ++i) {
    weights[i] = old == 1 ? least : std::lerp(least, 1.0, static_cast<double>(i) / static_cast<double>(old - 1));
  }
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight /= sum;
  return weights;
}

// The standard normal's probability of a..b, also far out.
double normal_mass(double a, double b) {
  const double r = std::numbers::sqrt2 / 2;
  if (a > 0) return (std::erfc(a * r) - std::erfc(b * r)) / 2;
  if (b < 0) return (std::erfc(-b * r) - std::erfc(-a * r)) / 2;
  return (std::erf(b * r) - std::erf(a * r)) / 2;
}

double log_sum_exp(const std::vector<double>& terms) {
  const double most = *std::max_element(terms.begin(), terms.end());
  if (std::isinf(most)) return most;
  double sum = 0;
  for (const double term : terms) sum += std::exp(term - most);
  return most + std::log(sum);
}

std::vector<double> prior_of(const trials::Distribution& d) {
  if (!d.probabilities.empty()) return d.probabilities;
  return std::vector<double>(d.values.size(), 1.0 / static_cast<double>(d.values.size()));
}

trials::Distribution constant(const trials::ParamValue& value) {
  trials::Distribution distribution;
  distribution.kind = trials::DistributionKind::kConstant;
  distribution.values = {value};
  return distribution;
}

}  // namespace

Axes axes_of(const trials::Space& space) {
  Axes axes;
  for (const trials::Parameter& parameter : space) {
    const auto choices = Choices::of(parameter.distribution);
    axes.emplace_back(choices && choices->count() == 1 ? constant(choices->value(0)) : parameter.distribution);
  }
  return axes;
}

Axis::Axis(const trials::Distribution& distribution)
    : distribution_(distribution), scale_(UnitScale::of(distribution)), prior_(prior_of(distribution)) {}

Axis::Point Axis::point_of(const trials::ParamValue& value) const {
  if (scale_) return {scale_->part_of(value), 0};
  const std::vector<trials::ParamValue>& values = distribution_.values;
  const auto found = std::find(values.begin(), values.end(), value);
  return {{}, found == values.end() ? 0 : found - values.begin()};
}

trials::ParamValue Axis::value_at(const Point& point) const {
  return scale_ ? scale_->at(point.part.middle()) : distribution_.values[static_cast<std::size_t>(point.category)];
}

GivenPoints given_points(const trials::Space& space, const Axes& axes, const trials::Params& given) {
  GivenPoints points;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const trials::ParamValue* value = trials::find_value(given, space[i].name);
    if (value != nullptr) points.emplace_back(i, axes[i].point_of(*value));
  }
  return points;
}

Parzen::Parzen(const Axes& axes, const std::vector<Points>& observed)
    : axes_(axes), weights_(weights_of(observed.size())) {
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].scale()) {
      std::vector<double> middles;
      middles.reserve(observed.size());
      for (const Points& points : observed) middles.push_back(points[i].part.middle());
      marginals_.push_back(numeric(middles));
      continue;
    }
    Marginal marginal;
    for (const Points& points : observed) marginal.category.push_back(points[i].category);
    marginal.category.push_back(-1);
    marginals_.push_back(std::move(marginal));
  }
}

// A kernel is as wide as the larger gap to its neighbours, the ends of the scale among them; the outermost of several
// kernels only as the gap inwards.
Parzen::Marginal Parzen::numeric(const std::vector<double>& observed) {
  const std::size_t n = observed.size();
  Marginal marginal;
  marginal.mu = observed;
  marginal.sigma.resize(n);
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return observed[a] < observed[b]; });
  const double least = 1.0 / std::min(100.0, static_cast<double>(n) + 2);
  for (std::size_t i = 0; i < n; ++i) {
    const double here = observed[order[i]];
    const double left = here - (i == 0 ? 0 : observed[order[i - 1]]);
    const double right = (i + 1 == n ? 1 : observed[order[i + 1]]) - here;
    double widest = std::max(left, right);
    if (n > 1 && i == 0) widest = right;
    if (n > 1 && i + 1 == n) widest = left;
    marginal.sigma[order[i]] = std::clamp(widest, least, 1.0);
  }
  marginal.mu.push_back(0.5);
  marginal.sigma.push_back(1);
  for (std::size_t k = 0; k <= n; ++k) {
    const double mu = marginal.mu[k], sigma = marginal.sigma[k];
    marginal.log_mass.push_back(std::log(normal_mass(-mu / sigma, (1 - mu) / sigma)));
  }
  return marginal;
}

Points Parzen::sample(CountedRandom& random, const Condition& condition) const {
  Points points = sample(random, condition.weights);
  for (const auto& [axis, point] : condition.given) points[axis] = point;
  return points;
}

Points Parzen::sample(CountedRandom& random, const std::vector<double>& weights) const {
  double u = random.uniform();
  std::size_t kernel = 0;
  while (kernel + 1 < kernels() && u >= weights[kernel]) u -= weights[kernel++];
  Points points;
  for (std::size_t i = 0; i < axes_.size(); ++i) points.push_back(sample(i, kernel, random));
  return points;
}

// A kernel is the more likely, the larger its own density is at the given coordinates.
Parzen::Condition Parzen::under(GivenPoints given) const {
  if (given.empty()) return {std::move(given), weights_};
  std::vector<double> terms(kernels());
  for (std::size_t k = 0; k < kernels(); ++k) {
    terms[k] = std::log(weights_[k]);
    for (const auto& [axis, point] : given) terms[k] += log_density(axis, k, point);
  }
  const double sum = log_sum_exp(terms);
  if (std::isinf(sum)) return {std::move(given), weights_};
  for (double& term : terms) term = std::exp(term - sum);
  return {std::move(given), std::move(terms)};
}

Axis::Point Parzen::sample(std::size_t axis, std::size_t kernel, CountedRandom& random) const {
  const Marginal& marginal = marginals_[axis];
  if (axes_[axis].scale()) {
    // At least a third of a kernel lies within the scale: its middle does, and it is no wider than the scale.
    double at = -1;
    while (at < 0 || at > 1) at = marginal.mu[kernel] + marginal.sigma[kernel] * random.normal();
    const UnitScale& scale = *axes_[axis].scale();
    return {scale.part_of(scale.at(at)), 0};
  }
  const std::vector<double>& prior = axes_[axis].prior();
  const double smoothing = static_cast<double>(prior.size()) / static_cast<double>(kernels());
  const std::int64_t own = marginal.category[kernel];
  if (own >= 0 && random.uniform() * (1 + smoothing) < 1) return {{}, own};
  double u = random.uniform();
  std::size_t chosen = 0;
  for (std::size_t c = 0; c < prior.size(); ++c) {
    if (prior[c] == 0) continue;
    chosen = c;
    if (u < prior[c]) break;
    u -= prior[c];
  }
  return {{}, static_cast<std::int64_t>(chosen)};
}

double Parzen::log_density(const Points& points) const {
  std::vector<double> terms(kernels());
  for (std::size_t k = 0; k < kernels(); ++k) {
    terms[k] = std::log(weights_[k]);
    for (std::size_t i = 0; i < axes_.size(); ++i) terms[k] += log_density(i, k, points[i]);
  }
  return log_sum_exp(terms);
}

double Parzen::log_density(std::size_t axis, std::size_t kernel, const Axis::Point& point) const {
  const Marginal& marginal = marginals_[axis];
  if (!axes_[axis].scale()) {
    const std::vector<double>& prior = axes_[axis].prior();
    const double share = prior[static_cast<std::size_t>(point.category)];
    const std::int64_t own = marginal.category[kernel];
    if (own < 0) return std::log(share);
    const double smoothing = static_cast<double>(prior.size()) / static_cast<double>(kernels());
    return std::log(((own == point.category ? 1 : 0) + smoothing * share) / (1 + smoothing));
  }
  const double mu = marginal.mu[kernel], sigma = marginal.sigma[kernel];
  const double from = (point.part.from - mu) / sigma, to = (point.part.to - mu) / sigma;
  if (!point.part.is_point()) return std::log(normal_mass(from, to)) - marginal.log_mass[kernel];
  return -from * from / 2 - std::log(sigma * std::sqrt(2 * std::numbers::pi)) - marginal.log_mass[kernel];
}

}  // namespace hfta::search
