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

// Adds the squared distances of every row of a from every row of b along one dimension, times `weight`.
void add_distances(const Matrix& a, const Matrix& b, Index dimension, bool category, double weight, Matrix& to) {
  if (!category) return add_squares(a.col(dimension), b.col(dimension), weight, to);
  for (Index j = 0; j < b.rows(); ++j) {
    to.col(j).array() += weight * (a.col(dimension).array() != b(j, dimension)).cast<double>();
  }
}

}  // namespace

void add_squares(const Vector& a, const Vector& b, double weight, Matrix& to) {
  for (Index j = 0; j < b.size(); ++j) to.col(j).array() += weight * (a.array() - b[j]).square();
}

Matrix matern(const Matrix& squared) {
  const Eigen::ArrayXXd r = kSqrt5 * squared.array().sqrt();
  return (1 + r + r.square() / 3) * (-r).exp();
}

Matern matern_with_slope(const Matrix& squared) {
  const Eigen::ArrayXXd r = kSqrt5 * squared.array().sqrt(), decay = (-r).exp();
  return {(1 + r + r.square() / 3) * decay, -5.0 / 6 * (1 + r) * decay};
}

Kernel::Kernel(const Inputs& inputs, const Hyperparameters& hyper)
    : category_(categories_of(inputs)),
      weights_((-2 * hyper.log_lengths.array()).exp()),
      variance_(std::exp(hyper.log_variance)) {}

Matrix Kernel::between(const Matrix& a, const Matrix& b) const {
  Matrix distances = Matrix::Zero(a.rows(), b.rows());
  for (Index i = 0; i < weights_.size(); ++i) {
    add_distances(a, b, i, category_[static_cast<std::size_t>(i)], weights_[i], distances);
  }
  return variance_ * matern(distances);
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
  const Matern all = matern_with_slope(squared);
  covariances = variance_ * all.kernel;
  derivatives.array().colwise() *= variance_ * all.slope.col(0).array();
}

Distances::Distances(const Inputs& inputs, const Matrix& x) {
  const std::vector<bool> category = categories_of(inputs);
  for (Index i = 0; i < inputs.size(); ++i) {
    squares_.push_back(Matrix::Zero(x.rows(), x.rows()));
    add_distances(x, x, i, category[static_cast<std::size_t>(i)], 1, squares_.back());
  }
}

Matern Distances::at(const Vector& log_lengths) const {
  Matrix distances = std::exp(-2 * log_lengths[0]) * squares_[0];
  for (Index i = 1; i < log_lengths.size(); ++i) {
    distances += std::exp(-2 * log_lengths[i]) * squares_[static_cast<std::size_t>(i)];
  }
  return matern_with_slope(distances);
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
