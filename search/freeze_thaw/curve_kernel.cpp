#include "search/freeze_thaw/curve_kernel.hpp"

#include <cmath>

namespace hfta::search::freeze_thaw {
namespace {

using Eigen::Index;

Matrix squared_differences(const Vector& a, const Vector& b) {
  Matrix squares = Matrix::Zero(a.size(), b.size());
  gp::add_squares(a.array().log(), b.array().log(), 1, squares);
  return squares;
}

Matrix same_trial(const std::vector<int>& a, const std::vector<int>& b) {
  Matrix same(static_cast<Index>(a.size()), static_cast<Index>(b.size()));
  for (Index i = 0; i < same.rows(); ++i) {
    for (Index j = 0; j < same.cols(); ++j) {
      const int trial = a[static_cast<std::size_t>(i)];
      same(i, j) = trial != kNoTrial && trial == b[static_cast<std::size_t>(j)] ? 1 : 0;
    }
  }
  return same;
}

double weight_of(double log_length) { return std::exp(-2 * log_length); }

}  // namespace

CurveKernel::CurveKernel(const Inputs& inputs, const CurveHyperparameters& hyper)
    : configurations_(inputs, {hyper.log_lengths, 0, 0}), epoch_weight_(weight_of(hyper.log_epoch_length)) {
  for (std::size_t i = 0; i < kParts; ++i) variances_[i] = std::exp(hyper.log_variances[i]);
}

Matrix CurveKernel::between(const CurvePoints& a, const CurvePoints& b) const {
  const Matrix near = configurations_.between(a.x, b.x), same = same_trial(a.trial, b.trial);
  const Matrix soon = gp::matern(epoch_weight_ * squared_differences(a.epochs, b.epochs));
  const auto& v = variances_;
  return near.array() * (v[kLevel] + v[kShape] * soon.array()) +
         same.array() * (v[kOwnLevel] + v[kOwnShape] * soon.array()) + v[kCommonShape] * soon.array();
}

double CurveKernel::variance() const {
  double sum = 0;
  for (const double variance : variances_) sum += variance;
  return sum;
}

CurveDistances::CurveDistances(const Inputs& inputs, const CurvePoints& points)
    : configurations_(inputs, points.x),
      epochs_(squared_differences(points.epochs, points.epochs)),
      same_(same_trial(points.trial, points.trial)) {}

Matrix CurveDistances::Covariance::sum() const {
  Matrix all = parts[0];
  for (std::size_t i = 1; i < kParts; ++i) all += parts[i];
  return all;
}

CurveDistances::Covariance CurveDistances::at(const CurveHyperparameters& hyper) const {
  const gp::Matern near = configurations_.at(hyper.log_lengths);
  const auto [soon, sooner] = gp::matern_with_slope(weight_of(hyper.log_epoch_length) * epochs_);
  std::array<double, kParts> v{};
  for (std::size_t i = 0; i < kParts; ++i) v[i] = std::exp(hyper.log_variances[i]);
  Covariance all;
  all.parts[kLevel] = v[kLevel] * near.kernel;
  all.parts[kShape] = v[kShape] * near.kernel.cwiseProduct(soon);
  all.parts[kOwnShape] = v[kOwnShape] * same_.cwiseProduct(soon);
  all.parts[kCommonShape] = v[kCommonShape] * soon;
  all.parts[kOwnLevel] = v[kOwnLevel] * same_;
  all.configuration_slope = near.slope.array() * (v[kLevel] + v[kShape] * soon.array());
  all.epoch_slope = sooner.array() * (v[kShape] * near.kernel.array() + v[kOwnShape] * same_.array() + v[kCommonShape]);
  return all;
}

Vector CurveDistances::gradient(const CurveHyperparameters& hyper, const Covariance& covariance,
                                const Matrix& weights) const {
  const Index d = hyper.log_lengths.size();
  Vector gradient(d + 1 + static_cast<Index>(kParts));
  gradient.head(d) = configurations_.by_log_lengths(hyper.log_lengths, covariance.configuration_slope, weights);
  gradient[d] = -2 * weight_of(hyper.log_epoch_length) *
                (covariance.epoch_slope.array() * epochs_.array() * weights.array()).sum();
  for (std::size_t i = 0; i < kParts; ++i) {
    gradient[d + 1 + static_cast<Index>(i)] = covariance.parts[i].cwiseProduct(weights).sum();
  }
  return gradient;
}

}  // namespace hfta::search::freeze_thaw
