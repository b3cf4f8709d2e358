#pragma once
/// The probability that a configuration ends with a value and does not fail. Internal to the gp sampler.
///
/// Gaussian process classification with a probit, by expectation propagation (Rasmussen and Williams, "Gaussian
/// Processes for Machine Learning", 2006, sections 3.6, 3.7 and 5.5.2). A latent function has the process's prior, and
/// a trial fails with the probability Phi(-f). A classifier rather than a regression of 0 and 1: the latter's certainty
/// beside the border follows from its noise, and lengths fitted to a step are short. Laplace's approximation would do
/// less work, but puts the probability of what failed twenty times at no less than a fifth.

#include "search/sampler/gp/process.hpp"

namespace hfta::search::gp {

class Feasibility {
 public:
  /// `x`: configurations, a row for each; `sign`: -1 where a trial failed, 1 where it did not. Fits hyperparameters.
  /// Deterministic.
  Feasibility(const Inputs& inputs, const Matrix& x, const Vector& sign);
  /// Takes the hyperparameters as given; log_noise is not read, since the noise is the probit's.
  Feasibility(const Inputs& inputs, const Hyperparameters& hyper, const Matrix& x, const Vector& sign);

  /// The logarithm of the probability that `x` does not fail; `gradient`, 0 for categories, may be nullptr.
  [[nodiscard]] double at(const Vector& x, Vector* gradient) const;
  /// at() for many points, a row for each.
  [[nodiscard]] Vector at(const Matrix& points) const;

 private:
  Kernel kernel_;
  Matrix x_;
  Vector slope_;     ///< Its product with covariances is the latent function's mean.
  Matrix narrowed_;  ///< Observations reduce the variance of that function by a quadratic form of this.
};

/// The negative logarithm of the hyperparameters' posterior density, less a constant, by the logarithms (lengths,
/// variance); sets `gradient`.
[[nodiscard]] double negative_log_posterior_of_signs(const Inputs& inputs, const Matrix& x, const Vector& sign,
                                                     const Vector& at, Vector& gradient);

}  // namespace hfta::search::gp
