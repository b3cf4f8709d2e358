#include "search/sampler/gp/kernel.hpp"

#include <cmath>

namespace hfta::search::gp {
namespace {

using Eigen::Index;

constexpr double kSqrt5 = 2.23606797749978969641;

std::vector<bool> categories_of(const Inputs& inputs) {
  std::vector<bool> category;
  for (const Dimension& dimension : inputs.dimensions()) category.push_back(dimension.is_category());
  return category;
}

// Squared differences of every row of a and every row of b along one dimension.
Matrix squares(const Matrix& a, const Matrix& b, Index dimension, bool category) {
  Matrix d = a.col(dimension).replicate(1, b.rows()) - b.col(dimension).transpose().replicate(a.rows(), 1);
  if (category) return (d.array() != 0).cast<double>();
  return d.array().square();
}

}  // namespace

double matern_of_square(double squared) {
  const double r = kSqrt5 * std::sqrt(squared);
  return (1 + r + r * r / 3) * std::exp(-r);
}

double matern_slope(double squared) {
  const double r = kSqrt5 * std::sqrt(squared);
  return -5.0 / 6 * (1 + r) * std::exp(-r);
}

Kernel::Kernel(const Inputs& inputs, const Hyperparameters& hyper)
    : category_(categories_of(inputs)),
      weights_((-2 * hyper.log_lengths.array()).exp()),
      variance_(std::exp(hyper.log_variance)) {}

Matrix Kernel::between(const Matrix& a, const Matrix& b) const {
  Matrix distances = Matrix::Zero(a.rows(), b.rows());
  for (Index i = 0; i < weights_.size(); ++i) {
    distances += weights_[i] * squares(a, b, i, category_[static_cast<std::size_t>(i)]);
  }
  return variance_ * distances.unaryExpr(&matern_of_square);
}

void Kernel::with_gradient(const Vector& x, const Matrix& a, Vector& covariances, Matrix& derivatives) const {
  const Index n = a.rows();
  derivatives.setZero(n, x.size());
  Vector squared = Vector::Zero(n);
  for (Index i = 0; i < x.size(); ++i) {
    if (category_[static_cast<std::size_t>(i)]) {
      squared.array() += weights_[i] * (a.col(i).array() != x[i]).cast<double>();
      continue;
    }
    derivatives.col(i) = (x[i] - a.col(i).array()).matrix();
    squared.array() += weights_[i] * derivatives.col(i).array().square();
    derivatives.col(i) *= 2 * weights_[i];
  }
  covariances = variance_ * squared.unaryExpr(&matern_of_square);
  derivatives.array().colwise() *= variance_ * squared.unaryExpr(&matern_slope).array();
}

Distances::Distances(const Inputs& inputs, const Matrix& x) {
  const std::vector<bool> category = categories_of(inputs);
  for (Index i = 0; i < inputs.size(); ++i) {
    squares_.push_back(squares(x, x, i, category[static_cast<std::size_t>(i)]));
  }
}

Distances::Unscaled Distances::at(const Vector& log_lengths) const {
  Matrix distances = std::exp(-2 * log_lengths[0]) * squares_[0];
  for (Index i = 1; i < log_lengths.size(); ++i) {
    distances += std::exp(-2 * log_lengths[i]) * squares_[static_cast<std::size_t>(i)];
  }
  return {distances.unaryExpr(&matern_of_square), distances.unaryExpr(&matern_slope)};
}

Vector Distances::by_log_lengths(const Vector& log_lengths, const Matrix& slope, const Matrix& weights) const {
  const Matrix sloped = slope.cwiseProduct(weights);
  Vector gradient(log_lengths.size());
  for (Index i = 0; i < gradient.size(); ++i) {
    gradient[i] = -2 * std::exp(-2 * log_lengths[i]) * sloped.cwiseProduct(squares_[static_cast<std::size_t>(i)]).sum();
  }
  return gradient;
}

Eigen::LLT<Matrix> factor(Matrix covariance) {
  for (double more = 1e-10 * covariance.diagonal().maxCoeff() + 1e-300;; more *= 100) {
    Eigen::LLT<Matrix> llt(covariance);
    if (llt.info() == Eigen::Success) return llt;
    covariance.diagonal().array() += more;
  }
}

}  // namespace hfta::search::gp
