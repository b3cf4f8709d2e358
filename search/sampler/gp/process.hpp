#pragma once
/// A Gaussian process over configurations. Internal to the gp sampler.
///
/// Rasmussen and Williams, "Gaussian Processes for Machine Learning" (2006), chapters 2 and 5.

#include "search/sampler/gp/kernel.hpp"

namespace hfta::search::gp {

/// Hyperparameters of maximal posterior density, where each logarithm is normal beforehand: lengths around
/// 0.2 sqrt(dimensions), as distances in a cube grow (Hvarfner, Hellsten and Nardi, "Vanilla Bayesian Optimization
/// Performs Great in High Dimensions", ICML 2024), the variance around 1, the noise around 1e-5. `x`: observations, a
/// row for each; `y`: their values, of mean 0 and variance 1. Deterministic.
[[nodiscard]] Hyperparameters fit(const Inputs& inputs, const Matrix& x, const Vector& y);

/// The negative logarithm of that density, less a constant, by the logarithms (lengths, variance, noise); sets
/// `gradient`.
[[nodiscard]] double negative_log_posterior(const Inputs& inputs, const Matrix& x, const Vector& y, const Vector& at,
                                            Vector& gradient);

/// L with L L^T = `covariance`, which is symmetric; where rounding has made it no covariance, of one with a larger
/// diagonal.
[[nodiscard]] Matrix root_of(Matrix covariance);

/// The process given observations: several functions at once, whose observations lie at the same places.
class Posterior {
 public:
  /// `y`: a column of values for each function.
  Posterior(const Inputs& inputs, const Hyperparameters& hyper, Matrix x, const Matrix& y);

  struct Moments {
    Vector means;          ///< Mean of each function.
    double deviation = 0;  ///< Standard deviation, which all functions share.
  };
  /// Derivatives of Moments by x: `means` has dimensions x functions entries, `deviation` has one for each dimension.
  /// Moments are those of the functions at a point, without noise.
  struct Gradients {
    Matrix means;
    Vector deviation;
  };
  [[nodiscard]] Moments at(const Vector& x, Gradients* gradients) const;
  /// Moments at many points, a row for each: means (points x functions) and deviations.
  struct Many {
    Matrix means;
    Vector deviations;
  };
  [[nodiscard]] Many at(const Matrix& points) const;
  /// The joint covariance of the first function at several points, without noise.
  [[nodiscard]] Matrix covariance(const Matrix& points) const;
  /// Means of the first function at the observations.
  [[nodiscard]] Vector means_at_observations() const;

  [[nodiscard]] const Matrix& observations() const { return x_; }

 private:
  Kernel kernel_;
  double noise_;
  Matrix x_, y_;
  Matrix lower_;    ///< L: L L^T = K + noise
  Matrix inverse_;  ///< (K + noise)^-1
  Matrix alpha_;    ///< (K + noise)^-1 y
};

}  // namespace hfta::search::gp
