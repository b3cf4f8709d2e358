#pragma once
/// A Gaussian process over learning curves, given what is known of them. Internal to freeze_thaw.

#include "search/freeze_thaw/curve_kernel.hpp"

namespace hfta::search::freeze_thaw {

/// Hyperparameters of maximal posterior density, where each logarithm is normal beforehand: the lengths of
/// configurations as in the gp sampler. `y`: values at the points, of mean 0 and variance 1. Deterministic.
[[nodiscard]] CurveHyperparameters fit(const Inputs& inputs, const CurvePoints& points, const Vector& y);

/// The negative logarithm of that density, less a constant, by the logarithms: lengths, the epochs' length, the
/// variances, the noise. Sets `gradient`.
[[nodiscard]] double negative_log_posterior(const Inputs& inputs, const CurvePoints& points, const Vector& y,
                                            const Vector& at, Vector& gradient);

/// A forecast of values at `wanted` points, given those at `known` points; and given that some of the wanted ones are
/// known, too, without saying their values: these count as what is expected of them, so that only variances change
/// (the "kriging believer" of Ginsbourger, Le Riche and Carraro, 2010).
class CurveForecast {
 public:
  CurveForecast(const Inputs& inputs, const CurveHyperparameters& hyper, const CurvePoints& known, const Vector& y,
                CurvePoints wanted);

  [[nodiscard]] const Vector& means() const { return means_; }
  /// Variances of the curves, without noise; of a trial that has not begun also without the chance that is its own:
  /// they tell how much is not known of its configuration.
  [[nodiscard]] const Vector& variances() const { return variances_; }
  /// The least of what the curves are expected to be at the known points, without the noise that values have there.
  [[nodiscard]] double least_known() const { return least_known_; }
  /// Counts one of the wanted values as known. Takes time (known + believed) x wanted.
  void believe(Eigen::Index wanted);

 private:
  /// The part of a wanted point's variance that variances() leaves out, but for the noise.
  [[nodiscard]] double chance_of(Eigen::Index wanted) const {
    return wanted_.trial[static_cast<std::size_t>(wanted)] == kNoTrial ? kernel_.own_variance() : 0;
  }

  CurveKernel kernel_;
  double noise_, least_known_;
  CurvePoints wanted_;
  Matrix half_;  ///< L^-1 K(known, wanted), with a row for each believed value below; L L^T = K(known, known) + noise
  Vector means_, variances_;
};

}  // namespace hfta::search::freeze_thaw
