#include "search/freeze_thaw/curve_process.hpp"

#include <cmath>
#include <utility>

#include "search/sampler/gp/minimum.hpp"

namespace hfta::search::freeze_thaw {
namespace {

using Eigen::Index;

// Normal distributions of the logarithms, and how far from their means fit() looks, in deviations. Those of lengths are
// gp's. The variances are largest for what most curves show: a level that follows from the configuration, and a
// curve that all have in common.
constexpr double kLengthOfCube = 0.2, kLengthDeviation = 0.3;
constexpr double kLogEpochLength = 0, kEpochLengthDeviation = 0.5;
constexpr std::array<double, kParts> kLogVariances = {0, -1, -3, -0.5, -5};
constexpr double kVarianceDeviation = 1;
constexpr double kLogNoise = -5, kNoiseDeviation = 1.5;
constexpr double kReach = 4;
constexpr double kLeastNoise = 1e-6;  // as a share of the values' variance 1: keeps the matrix invertible
constexpr int kEvaluations = 20;

struct Prior {
  Vector means, deviations;
};

Prior prior_of(Index dimensions) {
  const Index parts = static_cast<Index>(kParts), size = dimensions + 2 + parts;
  Prior prior{Vector(size), Vector(size)};
  prior.means.head(dimensions).setConstant(std::log(kLengthOfCube * std::sqrt(static_cast<double>(dimensions))));
  prior.deviations.head(dimensions).setConstant(kLengthDeviation);
  prior.means[dimensions] = kLogEpochLength;
  prior.deviations[dimensions] = kEpochLengthDeviation;
  for (Index i = 0; i < parts; ++i) prior.means[dimensions + 1 + i] = kLogVariances[static_cast<std::size_t>(i)];
  prior.deviations.segment(dimensions + 1, parts).setConstant(kVarianceDeviation);
  prior.means[size - 1] = kLogNoise;
  prior.deviations[size - 1] = kNoiseDeviation;
  return prior;
}

CurveHyperparameters unpacked(const Vector& at) {
  const Index parts = static_cast<Index>(kParts), dimensions = at.size() - 2 - parts;
  CurveHyperparameters hyper{at.head(dimensions), at[dimensions], {}, at[at.size() - 1]};
  for (Index i = 0; i < parts; ++i) hyper.log_variances[static_cast<std::size_t>(i)] = at[dimensions + 1 + i];
  return hyper;
}

double noise_of(const CurveHyperparameters& hyper) { return std::exp(hyper.log_noise) + kLeastNoise; }

double negative_log(const CurveDistances& distances, const Prior& prior, const Vector& y, const Vector& at,
                    Vector& gradient) {
  const CurveHyperparameters hyper = unpacked(at);
  const CurveDistances::Covariance parts = distances.at(hyper);
  Matrix covariance = parts.sum();
  covariance.diagonal().array() += noise_of(hyper);
  const Eigen::LLT<Matrix> llt = gp::factor(std::move(covariance));
  const Vector alpha = llt.solve(y);
  // Rasmussen and Williams, eq. 5.9.
  Matrix weights = llt.solve(Matrix::Identity(y.size(), y.size()));
  weights.noalias() -= alpha * alpha.transpose();
  weights /= 2;
  const Vector off = (at - prior.means).cwiseQuotient(prior.deviations);
  gradient = off.cwiseQuotient(prior.deviations);
  gradient.head(at.size() - 1) += distances.gradient(hyper, parts, weights);
  gradient[at.size() - 1] += std::exp(hyper.log_noise) * weights.trace();
  return y.dot(alpha) / 2 + llt.matrixLLT().diagonal().array().log().sum() + off.squaredNorm() / 2;
}

}  // namespace

CurveHyperparameters fit(const Inputs& inputs, const CurvePoints& points, const Vector& y) {
  const CurveDistances distances(inputs, points);
  const Prior prior = prior_of(inputs.size());
  const auto f = [&](const Vector& at, Vector& gradient) { return negative_log(distances, prior, y, at, gradient); };
  return unpacked(gp::minimize(f, prior.means, prior.means - kReach * prior.deviations,
                               prior.means + kReach * prior.deviations, kEvaluations)
                      .x);
}

double negative_log_posterior(const Inputs& inputs, const CurvePoints& points, const Vector& y, const Vector& at,
                              Vector& gradient) {
  return negative_log(CurveDistances(inputs, points), prior_of(inputs.size()), y, at, gradient);
}

CurveForecast::CurveForecast(const Inputs& inputs, const CurveHyperparameters& hyper, const CurvePoints& known,
                             const Vector& y, CurvePoints wanted)
    : kernel_(inputs, hyper), noise_(noise_of(hyper)), least_known_(0), wanted_(std::move(wanted)) {
  Matrix covariance = kernel_.between(known, known);
  covariance.diagonal().array() += noise_;
  const Eigen::LLT<Matrix> llt = gp::factor(std::move(covariance));
  least_known_ = (y - noise_ * llt.solve(y)).minCoeff();  // K (K + noise)^-1 y
  half_ = llt.matrixL().solve(kernel_.between(known, wanted_));
  means_ = half_.transpose() * llt.matrixL().solve(y);
  variances_ = (kernel_.variance() - half_.colwise().squaredNorm().array()).transpose();
  for (Index i = 0; i < variances_.size(); ++i) variances_[i] -= chance_of(i);
}

// Adds a row to the factors.
void CurveForecast::believe(Index wanted) {
  const CurvePoints one{
      wanted_.x.row(wanted), wanted_.epochs.segment(wanted, 1), {wanted_.trial[static_cast<std::size_t>(wanted)]}};
  const double root = std::sqrt(std::max(variances_[wanted], 0.0) + chance_of(wanted) + noise_);
  const Eigen::RowVectorXd row = (kernel_.between(one, wanted_) - half_.col(wanted).transpose() * half_) / root;
  half_.conservativeResize(half_.rows() + 1, half_.cols());
  half_.bottomRows(1) = row;
  variances_ -= row.transpose().cwiseAbs2();
}

}  // namespace hfta::search::freeze_thaw
