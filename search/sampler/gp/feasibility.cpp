#include "search/sampler/gp/feasibility.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "search/sampler/gp/minimum.hpp"
#include "search/sampler/gp/normal.hpp"

namespace hfta::search::gp {
namespace {

using Eigen::Index;

// Normal distributions of the logarithms, and how far from their means the fit looks, in deviations.
// Chosen on the functions that fail in bench/search, with seeds from 100 on. Long lengths carry over to unseen places
// what the trials beside them tell; the variance is large since most borders are sharp.
constexpr double kLengthOfCube = 2, kLengthDeviation = 0.5;
constexpr double kLogVariance = 7, kVarianceDeviation = 1;
constexpr double kReach = 3;
constexpr int kEvaluations = 20;

// Each observation's likelihood Phi(sign f) as a Gaussian of f, by expectation propagation: precisions, and precisions
// times means.
struct Sites {
  Vector precision, shift;
};

// The posterior with Gaussians in place of the likelihoods.
struct Approximation {
  Vector slope;     // K^-1 times the latent function's mean
  Matrix narrowed;  // (K + S^-1)^-1, S the sites' precisions
  double log_evidence = 0;
};

// The latent function's moments at the observations.
struct Moments {
  Matrix covariance;
  Vector mean;
};

Vector solved(const Eigen::LLT<Matrix>& llt, const Vector& root, const Vector& of) {
  return root.cwiseProduct(llt.solve(root.cwiseProduct(of)));
}

Eigen::LLT<Matrix> factor_of(const Matrix& kernel, const Vector& root) {
  Matrix b = root.asDiagonal() * kernel * root.asDiagonal();
  b.diagonal().array() += 1;
  return factor(std::move(b));
}

// `root`: square roots of the sites' precisions; `llt`: factor_of() these.
Moments moments_of(const Matrix& kernel, const Sites& sites, const Vector& root, const Eigen::LLT<Matrix>& llt) {
  const Matrix half = llt.matrixL().solve(root.asDiagonal() * kernel);
  Moments moments{kernel - half.transpose() * half, {}};
  moments.mean = moments.covariance * sites.shift;
  return moments;
}

// Replaces an observation's Gaussian in the moments by one that gives the moments which its likelihood would give.
// Returns the change of its precision, relative to the precision that is left without it plus the new one.
double improve(const Vector& sign, Index i, Sites& sites, Moments& moments) {
  const double variance = moments.covariance(i, i);
  const double left = 1 / variance - sites.precision[i], shift_left = moments.mean[i] / variance - sites.shift[i];
  if (!(left > 0)) return 0;
  const double scale = std::sqrt(1 + 1 / left), z = sign[i] * shift_left / left / scale;
  const double ratio = std::exp(log_density(z) - log_probability(z));
  const double mean = shift_left / left + sign[i] * ratio / (left * scale);
  const double narrowed = 1 / left - ratio * (z + ratio) / (left * left * scale * scale);
  const double precision = std::max(0.0, 1 / narrowed - left), change = precision - sites.precision[i];
  const double shift_change = mean / narrowed - shift_left - sites.shift[i];
  if (!std::isfinite(change) || !std::isfinite(shift_change)) return 0;
  sites.precision[i] = precision;
  sites.shift[i] += shift_change;
  const Vector column = moments.covariance.col(i);
  const double scaled = change / (1 + change * variance);
  moments.mean += (shift_change - scaled * (moments.mean[i] + shift_change * variance)) * column;
  moments.covariance.noalias() -= scaled * column * column.transpose();
  return std::abs(change) / (left + precision);
}

// Rasmussen and Williams, Algorithm 3.5, from `sites` on.
void propagate(const Matrix& kernel, const Vector& sign, Sites& sites) {
  constexpr int kSweeps = 20;
  constexpr double kClose = 1e-4;
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    const Vector root = sites.precision.cwiseSqrt();
    Moments moments = moments_of(kernel, sites, root, factor_of(kernel, root));
    double most = 0;
    for (Index i = 0; i < sign.size(); ++i) most = std::max(most, improve(sign, i, sites, moments));
    if (most < kClose) return;
  }
}

Approximation approximation_of(const Matrix& kernel, const Vector& sign, const Sites& sites) {
  const Vector root = sites.precision.cwiseSqrt();
  const Eigen::LLT<Matrix> llt = factor_of(kernel, root);
  const Matrix scaled = root.asDiagonal();
  Approximation result;
  result.narrowed = scaled * llt.solve(scaled);
  result.slope = sites.shift - solved(llt, root, kernel * sites.shift);
  // The evidence, eqs. 3.65, 3.73 and 3.74.
  const Moments moments = moments_of(kernel, sites, root, llt);
  result.log_evidence = -llt.matrixLLT().diagonal().array().log().sum() + sites.shift.dot(moments.mean) / 2;
  for (Index i = 0; i < sign.size(); ++i) {
    const double variance = moments.covariance(i, i), precision = sites.precision[i], shift = sites.shift[i];
    const double left = 1 / variance - precision, mean = (moments.mean[i] / variance - shift) / left;
    result.log_evidence += log_probability(sign[i] * mean / std::sqrt(1 + 1 / left)) + std::log1p(precision / left) / 2;
    result.log_evidence += (mean * left * (precision * mean - 2 * shift) - shift * shift) / (2 * (left + precision));
  }
  return result;
}

struct Prior {
  Vector means, deviations;
};

Prior prior_of(Index dimensions) {
  Prior prior{Vector(dimensions + 1), Vector(dimensions + 1)};
  prior.means.setConstant(std::log(kLengthOfCube * std::sqrt(static_cast<double>(dimensions))));
  prior.deviations.setConstant(kLengthDeviation);
  prior.means[dimensions] = kLogVariance;
  prior.deviations[dimensions] = kVarianceDeviation;
  return prior;
}

double negative_log(const Distances& distances, const Vector& sign, const Vector& at, Sites& sites, Vector& gradient) {
  const Index d = at.size() - 1;
  const Prior prior = prior_of(d);
  const double variance = std::exp(at[d]);
  const Matern unscaled = distances.at(at.head(d));
  const Matrix kernel = variance * unscaled.kernel;
  propagate(kernel, sign, sites);
  const Approximation fitted = approximation_of(kernel, sign, sites);
  // Algorithm 5.2: the evidence does not change with the sites.
  const Matrix weights = (fitted.slope * fitted.slope.transpose() - fitted.narrowed) / 2;
  const Vector off = (at - prior.means).cwiseQuotient(prior.deviations);
  gradient = off.cwiseQuotient(prior.deviations);
  gradient.head(d) -= variance * distances.by_log_lengths(at.head(d), unscaled.slope, weights);
  gradient[d] -= weights.cwiseProduct(kernel).sum();
  return off.squaredNorm() / 2 - fitted.log_evidence;
}

Sites no_sites(Index count) { return {Vector::Zero(count), Vector::Zero(count)}; }

Hyperparameters fit_signs(const Inputs& inputs, const Matrix& x, const Vector& sign) {
  const Distances distances(inputs, x);
  const Prior prior = prior_of(inputs.size());
  Sites sites = no_sites(sign.size());  // each evaluation begins with those of the one before
  const Minimum found = minimize(
      [&](const Vector& at, Vector& gradient) { return negative_log(distances, sign, at, sites, gradient); },
      prior.means, prior.means - kReach * prior.deviations, prior.means + kReach * prior.deviations, kEvaluations);
  return {found.x.head(inputs.size()), found.x[inputs.size()], 0};
}

}  // namespace

double negative_log_posterior_of_signs(const Inputs& inputs, const Matrix& x, const Vector& sign, const Vector& at,
                                       Vector& gradient) {
  Sites sites = no_sites(sign.size());
  return negative_log(Distances(inputs, x), sign, at, sites, gradient);
}

Feasibility::Feasibility(const Inputs& inputs, const Matrix& x, const Vector& sign)
    : Feasibility(inputs, fit_signs(inputs, x, sign), x, sign) {}

Feasibility::Feasibility(const Inputs& inputs, const Hyperparameters& hyper, const Matrix& x, const Vector& sign)
    : kernel_(inputs, hyper), x_(x) {
  const Matrix kernel = kernel_.between(x_, x_);
  Sites sites = no_sites(sign.size());
  propagate(kernel, sign, sites);
  Approximation fitted = approximation_of(kernel, sign, sites);
  slope_ = std::move(fitted.slope);
  narrowed_ = std::move(fitted.narrowed);
}

// Phi(mean / sqrt(1 + variance)), eq. 3.82.
double Feasibility::at(const Vector& x, Vector* gradient) const {
  Vector covariances;
  Matrix derivatives;
  kernel_.with_gradient(x, x_, covariances, derivatives);
  const Vector taken = narrowed_ * covariances;
  const double mean = covariances.dot(slope_);
  const double spread = 1 + std::max(0.0, kernel_.variance() - covariances.dot(taken)), root = std::sqrt(spread);
  const double u = mean / root, value = log_probability(u);
  if (gradient != nullptr) {
    const Vector by_u = (slope_ / root + mean / (spread * root) * taken) * std::exp(log_density(u) - value);
    *gradient = derivatives.transpose() * by_u;
  }
  return value;
}

Vector Feasibility::at(const Matrix& points) const {
  const Matrix covariances = kernel_.between(points, x_);
  const Vector means = covariances * slope_;
  const Vector taken = (covariances * narrowed_).cwiseProduct(covariances).rowwise().sum();
  const Vector spread = 1 + (kernel_.variance() - taken.array()).max(0.0);
  return means.cwiseQuotient(spread.cwiseSqrt()).unaryExpr(&log_probability);
}

}  // namespace hfta::search::gp
