#pragma once
/// Covariances of configurations. Internal to the gp sampler.
///
/// Rasmussen and Williams, "Gaussian Processes for Machine Learning" (2006), chapter 4.
/// The kernel is Matern's with nu = 5/2 over r^2 = sum_i (d_i / l_i)^2, a length scale l_i for each dimension; d_i is
/// the difference of two numbers, or for categories 0 where they are equal and 1 where not.

#include <Eigen/Cholesky>
#include <vector>

#include "search/sampler/inputs.hpp"

namespace hfta::search::gp {

/// Natural logarithms, so that all are positive.
struct Hyperparameters {
  Vector log_lengths;       ///< Length scale of each dimension.
  double log_variance = 0;  ///< Variance of the kernel.
  double log_noise = 0;     ///< Variance of an observation around the function.
};

/// Matern's function of each r^2, for variance 1.
[[nodiscard]] Matrix matern(const Matrix& squared);
/// The same, with its derivatives by r^2.
struct Matern {
  Matrix kernel, slope;
};
[[nodiscard]] Matern matern_with_slope(const Matrix& squared);

/// Adds the squared differences of every number of a and every number of b, times `weight`, to an a x b matrix.
void add_squares(const Vector& a, const Vector& b, double weight, Matrix& to);

class Kernel {
 public:
  Kernel(const Inputs& inputs, const Hyperparameters& hyper);
  /// Covariances of every row of a with every row of b.
  [[nodiscard]] Matrix between(const Matrix& a, const Matrix& b) const;
  [[nodiscard]] double variance() const { return variance_; }
  /// Covariances of x with every row of a, and their derivatives by x, one row for each; 0 for categories.
  void with_gradient(const Vector& x, const Matrix& a, Vector& covariances, Matrix& derivatives) const;

 private:
  std::vector<bool> category_;
  Vector weights_;  ///< 1 / l^2
  double variance_;
};

/// Distances between the observations `x`, for their kernel; kept from one choice of hyperparameters to the next.
class Distances {
 public:
  Distances(const Inputs& inputs, const Matrix& x);

  /// The kernel for variance 1, at the logarithms of the lengths.
  [[nodiscard]] Matern at(const Vector& log_lengths) const;
  /// The derivatives of sum_ij weights_ij k_ij by the logarithms of the lengths, for variance 1; `slope` as at() gives
  /// it.
  [[nodiscard]] Vector by_log_lengths(const Vector& log_lengths, const Matrix& slope, const Matrix& weights) const;

 private:
  std::vector<Matrix> squares_;  ///< Squared differences along each dimension.
};

/// The Cholesky factors of `covariance`, which is symmetric; where rounding has made it no covariance, of one with a
/// larger diagonal.
[[nodiscard]] Eigen::LLT<Matrix> factor(Matrix covariance);

}  // namespace hfta::search::gp
