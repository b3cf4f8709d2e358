#include "search/sampler/gp/acquisition.hpp"

#include <cmath>
#include <numbers>
#include <utility>

namespace hfta::search::gp {
namespace {

using Eigen::Index;

const double kLogRoot2Pi = std::log(2 * std::numbers::pi) / 2;
constexpr double kBetween = 0.02;  // variance of where between -1 (did not fail) and 1 (failed) the border lies
constexpr double kFar = -25;       // below, Mills' ratio is summed as a series

double log_density(double z) { return -z * z / 2 - kLogRoot2Pi; }
double probability(double z) { return std::erfc(-z / std::numbers::sqrt2) / 2; }

// The logarithm of the mean of exp(terms).
double log_mean_exp(const Vector& terms) {
  const double most = terms.maxCoeff();
  if (!std::isfinite(most)) return most;
  return most + std::log((terms.array() - most).exp().mean());
}

double log_not_failing(const Posterior::Moments& moments) {
  return log_probability(-moments.means[0] / std::sqrt(kBetween + moments.deviation * moments.deviation));
}

}  // namespace

double log_improvement(double z) {
  if (z > -1) return std::log(std::exp(log_density(z)) + z * probability(z));
  const double inverse = 1 / (z * z);
  // 1 - |z| M(|z|), M(t) = Phi(-t) / phi(t): for large |z| as its asymptotic series.
  if (z < kFar) return log_density(z) + std::log(inverse * (1 - inverse * (3 - inverse * (15 - inverse * 105))));
  return log_density(z) + std::log1p(z * std::exp(std::log(probability(z)) - log_density(z)));
}

double log_probability(double z) {
  if (z > kFar) return std::log(probability(z));
  const double inverse = 1 / (z * z);
  return log_density(z) - std::log(-z) + std::log1p(-inverse * (1 - inverse * (3 - inverse * 15)));
}

Acquisition::Acquisition(Posterior functions, Vector best, std::optional<Posterior> failing)
    : functions_(std::move(functions)), best_(std::move(best)), failing_(std::move(failing)) {}

double Acquisition::at(const Vector& x, Vector* gradient) const {
  Posterior::Gradients slopes;
  const Posterior::Moments moments = functions_.at(x, gradient != nullptr ? &slopes : nullptr);
  const double deviation = moments.deviation;
  const Vector z = (best_ - moments.means) / deviation;
  const Vector terms = z.unaryExpr(&log_improvement);
  double value = log_mean_exp(terms) + std::log(deviation);
  if (gradient != nullptr) {
    // Of EI = s h(z): by the mean -Phi(z), by the deviation phi(z), each over EI.
    const Vector shares = (terms.array() - terms.maxCoeff()).exp().matrix();
    Vector by_mean(z.size());
    double by_deviation = 0;
    for (Index i = 0; i < z.size(); ++i) {
      by_mean[i] = -shares[i] * std::exp(log_probability(z[i]) - terms[i]);
      by_deviation += shares[i] * std::exp(log_density(z[i]) - terms[i]);
    }
    *gradient = (slopes.means * by_mean + by_deviation * slopes.deviation) / (deviation * shares.sum());
  }
  if (!failing_) return value;
  Posterior::Gradients failing_slopes;
  const Posterior::Moments failing = failing_->at(x, gradient != nullptr ? &failing_slopes : nullptr);
  const double log_feasible = log_not_failing(failing);
  if (gradient != nullptr) {
    const double spread = kBetween + failing.deviation * failing.deviation, root = std::sqrt(spread);
    const double u = -failing.means[0] / root, by_u = std::exp(log_density(u) - log_feasible);
    *gradient +=
        by_u * (-failing_slopes.means.col(0) / root - u * failing.deviation / spread * failing_slopes.deviation);
  }
  return value + log_feasible;
}

Vector Acquisition::at(const Matrix& points) const {
  const Posterior::Many many = functions_.at(points);
  Vector values(points.rows());
  for (Index i = 0; i < points.rows(); ++i) {
    const double deviation = many.deviations[i];
    const Vector z = (best_ - many.means.row(i).transpose()) / deviation;
    values[i] = log_mean_exp(z.unaryExpr(&log_improvement)) + std::log(deviation);
  }
  if (!failing_) return values;
  const Posterior::Many failing = failing_->at(points);
  for (Index i = 0; i < points.rows(); ++i) {
    values[i] += log_not_failing({failing.means.row(i).transpose(), failing.deviations[i]});
  }
  return values;
}

Acquisition make_acquisition(const Inputs& inputs, const Hyperparameters& hyper, const Matrix& x, const Vector& y,
                             const Matrix& running, const Matrix& samples, std::optional<Posterior> failing) {
  Posterior ended(inputs, hyper, x, y);
  const double best = ended.means_at_observations().minCoeff();
  if (running.rows() == 0) return {std::move(ended), Vector::Constant(1, best), std::move(failing)};
  const Matrix means = ended.at(running).means;
  const Matrix root = root_of(ended.covariance(running));
  const Matrix values = means.replicate(1, samples.cols()) + root * samples;
  Matrix all_x(x.rows() + running.rows(), x.cols()), all_y(all_x.rows(), samples.cols());
  all_x << x, running;
  all_y << y.replicate(1, samples.cols()), values;
  return {Posterior(inputs, hyper, std::move(all_x), all_y), values.colwise().minCoeff().cwiseMin(best).transpose(),
          std::move(failing)};
}

}  // namespace hfta::search::gp
