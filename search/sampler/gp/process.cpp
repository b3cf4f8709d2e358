#include "search/sampler/gp/process.hpp"

#include <Eigen/Cholesky>
#include <cmath>
#include <limits>
#include <utility>

#include "search/sampler/gp/minimum.hpp"

namespace hfta::search::gp {
namespace {

using Eigen::Index;

// Normal distributions of the logarithms, and how far from their means fit() looks, in deviations.
constexpr double kLengthOfCube = 0.2, kLengthDeviation = 0.3;
constexpr double kVarianceDeviation = 1.0;
constexpr double kLogNoise = -11.5, kNoiseDeviation = 3.0;
constexpr double kLogMuchNoise = -2;  // log noise where a second search begins
constexpr double kReach = 4;
constexpr double kLeastNoise = 1e-9;  // as a share of the values' variance 1: keeps the matrix invertible

struct Prior {
  Vector means, deviations;
};

Prior prior_of(Index dimensions) {
  Prior prior{Vector(dimensions + 2), Vector(dimensions + 2)};
  const double count = std::max<double>(1, static_cast<double>(dimensions));
  prior.means.head(dimensions).setConstant(std::log(kLengthOfCube * std::sqrt(count)));
  prior.deviations.head(dimensions).setConstant(kLengthDeviation);
  prior.means.tail(2) << 0, kLogNoise;
  prior.deviations.tail(2) << kVarianceDeviation, kNoiseDeviation;
  return prior;
}

// The posterior density of hyperparameters; keeps what it needs of the observations between evaluations.
class Density {
 public:
  Density(const Inputs& inputs, const Matrix& x, const Vector& y)
      : y_(y), prior_(prior_of(inputs.size())), distances_(inputs, x) {}

  [[nodiscard]] const Prior& prior() const { return prior_; }

  double negative_log(const Vector& at, Vector& gradient) const {
    const Index n = y_.size(), d = at.size() - 2;
    const double variance = std::exp(at[d]), noise = std::exp(at[d + 1]) + kLeastNoise;
    const Matern unscaled = distances_.at(at.head(d));
    Matrix covariance = variance * unscaled.kernel;
    covariance.diagonal().array() += noise;
    const Eigen::LLT<Matrix> llt = factor(std::move(covariance));
    const Vector alpha = llt.solve(y_);
    // dL/dt = tr(W dK/dt) / 2 with W = K^-1 - alpha alpha^T (Rasmussen and Williams, eq. 5.9).
    Matrix w = llt.solve(Matrix::Identity(n, n));
    w.noalias() -= alpha * alpha.transpose();
    const Vector off = (at - prior_.means).cwiseQuotient(prior_.deviations);
    gradient = off.cwiseQuotient(prior_.deviations);
    gradient.head(d) += variance / 2 * distances_.by_log_lengths(at.head(d), unscaled.slope, w);
    gradient[d] += variance * w.cwiseProduct(unscaled.kernel).sum() / 2;
    gradient[d + 1] += std::exp(at[d + 1]) * w.trace() / 2;
    const double log_root = llt.matrixLLT().diagonal().array().log().sum();
    return y_.dot(alpha) / 2 + log_root + off.squaredNorm() / 2;
  }

 private:
  Vector y_;
  Prior prior_;
  Distances distances_;
};

}  // namespace

double negative_log_posterior(const Inputs& inputs, const Matrix& x, const Vector& y, const Vector& at,
                              Vector& gradient) {
  return Density(inputs, x, y).negative_log(at, gradient);
}

Matrix root_of(Matrix covariance) { return factor(std::move(covariance)).matrixL(); }

Hyperparameters fit(const Inputs& inputs, const Matrix& x, const Vector& y) {
  constexpr int kEvaluations = 40;
  const Density density(inputs, x, y);
  const Prior& prior = density.prior();
  const Vector low = prior.means - kReach * prior.deviations, high = prior.means + kReach * prior.deviations;
  const auto f = [&](const Vector& at, Vector& gradient) { return density.negative_log(at, gradient); };
  // Noisy values give two maxima: one explains them by noise, the other by a rough function.
  Minimum found = minimize(f, prior.means, low, high, kEvaluations);
  Vector noisy = prior.means;
  noisy.tail(1).setConstant(kLogMuchNoise);
  if (Minimum other = minimize(f, noisy, low, high, kEvaluations); other.value < found.value) found = std::move(other);
  const Vector& best = found.x;
  const Index d = inputs.size();
  return {best.head(d), best[d], best[d + 1]};
}

Posterior::Posterior(const Inputs& inputs, const Hyperparameters& hyper, Matrix x, const Matrix& y)
    : kernel_(inputs, hyper), noise_(std::exp(hyper.log_noise) + kLeastNoise), x_(std::move(x)), y_(y) {
  Matrix covariance = kernel_.between(x_, x_);
  covariance.diagonal().array() += noise_;
  const Eigen::LLT<Matrix> llt = factor(std::move(covariance));
  lower_ = llt.matrixL();
  inverse_ = llt.solve(Matrix::Identity(x_.rows(), x_.rows()));
  alpha_ = llt.solve(y_);
}

Posterior::Moments Posterior::at(const Vector& x, Gradients* gradients) const {
  Vector covariances;
  Matrix derivatives;
  kernel_.with_gradient(x, x_, covariances, derivatives);
  const Vector half = lower_.triangularView<Eigen::Lower>().solve(covariances);
  const double left = kernel_.variance() - half.squaredNorm();
  Moments moments{alpha_.transpose() * covariances, std::sqrt(std::max(left, 1e-14 * kernel_.variance()))};
  if (gradients != nullptr) {
    gradients->means = derivatives.transpose() * alpha_;
    gradients->deviation = derivatives.transpose() * (inverse_ * covariances) / -moments.deviation;
  }
  return moments;
}

Posterior::Many Posterior::at(const Matrix& points) const {
  const Matrix covariances = kernel_.between(x_, points);
  const Matrix half = lower_.triangularView<Eigen::Lower>().solve(covariances);
  const double least = 1e-14 * kernel_.variance();
  return {covariances.transpose() * alpha_,
          (kernel_.variance() - half.colwise().squaredNorm().array()).max(least).sqrt().matrix().transpose()};
}

Matrix Posterior::covariance(const Matrix& points) const {
  const Matrix half = lower_.triangularView<Eigen::Lower>().solve(kernel_.between(x_, points));
  return kernel_.between(points, points) - half.transpose() * half;
}

Vector Posterior::means_at_observations() const { return y_.col(0) - noise_ * alpha_.col(0); }

}  // namespace hfta::search::gp
