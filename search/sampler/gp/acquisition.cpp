#include "search/sampler/gp/acquisition.hpp"

#include <cmath>
#include <utility>

#include "search/sampler/gp/normal.hpp"

namespace hfta::search::gp {
namespace {

using Eigen::Index;

// The logarithm of the mean of exp(terms).
double log_mean_exp(const Vector& terms) {
  const double most = terms.maxCoeff();
  if (!std::isfinite(most)) return most;
  return most + std::log((terms.array() - most).exp().mean());
}

}  // namespace

Acquisition::Acquisition(Posterior functions, Vector best, std::optional<Feasibility> feasibility)
    : functions_(std::move(functions)), best_(std::move(best)), feasibility_(std::move(feasibility)) {}

double Acquisition::at(const Vector& x, Vector* gradient) const {
  Posterior::Gradients slopes;
  const Posterior::Moments moments = functions_.at(x, gradient != nullptr ? &slopes : nullptr);
  const double deviation = moments.deviation;
  const Vector z = (best_ - moments.means) / deviation;
  const Vector terms = z.unaryExpr(&log_improvement);
  double value = log_mean_exp(terms) + std::log(deviation);
  if (gradient != nullptr) {
    // The derivatives of EI = s h(z): by the mean -Phi(z), by the deviation phi(z), each over EI.
    const Vector shares = (terms.array() - terms.maxCoeff()).exp().matrix();
    Vector by_mean(z.size());
    double by_deviation = 0;
    for (Index i = 0; i < z.size(); ++i) {
      by_mean[i] = -shares[i] * std::exp(log_probability(z[i]) - terms[i]);
      by_deviation += shares[i] * std::exp(log_density(z[i]) - terms[i]);
    }
    *gradient = (slopes.means * by_mean + by_deviation * slopes.deviation) / (deviation * shares.sum());
  }
  if (!feasibility_) return value;
  Vector slope;
  value += kCaution * feasibility_->at(x, gradient != nullptr ? &slope : nullptr);
  if (gradient != nullptr) *gradient += kCaution * slope;
  return value;
}

Vector Acquisition::at(const Matrix& points) const {
  const Posterior::Many many = functions_.at(points);
  Vector values(points.rows());
  for (Index i = 0; i < points.rows(); ++i) {
    const double deviation = many.deviations[i];
    const Vector z = (best_ - many.means.row(i).transpose()) / deviation;
    values[i] = log_mean_exp(z.unaryExpr(&log_improvement)) + std::log(deviation);
  }
  return feasibility_ ? values + kCaution * feasibility_->at(points) : values;
}

Acquisition make_acquisition(const Inputs& inputs, const Hyperparameters& hyper, const Matrix& x, const Vector& y,
                             const Matrix& running, const Matrix& samples, std::optional<Feasibility> feasibility) {
  Posterior ended(inputs, hyper, x, y);
  const double best = ended.means_at_observations().minCoeff();
  if (running.rows() == 0) return {std::move(ended), Vector::Constant(1, best), std::move(feasibility)};
  const Matrix means = ended.at(running).means;
  const Matrix root = root_of(ended.covariance(running));
  const Matrix values = means.replicate(1, samples.cols()) + root * samples;
  Matrix all_x(x.rows() + running.rows(), x.cols()), all_y(all_x.rows(), samples.cols());
  all_x << x, running;
  all_y << y.replicate(1, samples.cols()), values;
  return {Posterior(inputs, hyper, std::move(all_x), all_y), values.colwise().minCoeff().cwiseMin(best).transpose(),
          std::move(feasibility)};
}

}  // namespace hfta::search::gp
