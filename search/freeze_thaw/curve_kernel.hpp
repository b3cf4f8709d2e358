#pragma once
/// Covariances of learning curves: of the values of trials after some of their epochs. Internal to freeze_thaw.
///
/// The value of configuration x, as trial i, after epoch e is a sum of five independent parts:
///
///     f(x) + g(x, e) + w_i(e) + s(e) + c_i
///
/// how good the configuration is, how its curve differs from others, how this trial's curve differs from those of its
/// neighbours, the curve that all have in common, and what chance gave this trial. Their covariances are products of
/// M(x, x'), T(e, e') and "the same trial", each with a variance of its own:
///
///     v_f M + v_g M T + v_w [i = i'] T + v_s T + v_c [i = i']
///
/// M is Matern's kernel with nu = 5/2 over configurations (search/sampler/gp/kernel.hpp), T the same over the logarithm
/// of the number of epochs, on which curves are about equally smooth everywhere. The paper (Swersky, Snoek and Adams,
/// "Freeze-Thaw Bayesian Optimization", arXiv 1406.3896, 2014) has v_f M + v_w [i = i'] T' with a T' for curves that
/// decay exponentially; schedules of rates and overfitting make curves of other shapes, which depend on x.

#include <array>
#include <cstddef>
#include <vector>

#include "search/sampler/gp/kernel.hpp"

namespace hfta::search::freeze_thaw {

/// The places of the parts, in the order above.
inline constexpr std::size_t kLevel = 0, kShape = 1, kOwnShape = 2, kCommonShape = 3, kOwnLevel = 4, kParts = 5;

/// Natural logarithms, so that all are positive.
struct CurveHyperparameters {
  Vector log_lengths;           ///< Length scale of each dimension of configurations.
  double log_epoch_length = 0;  ///< Length scale along the logarithm of epochs.
  std::array<double, kParts> log_variances{};
  double log_noise = 0;
};

/// The points of values on learning curves: configuration, epoch and trial of each.
struct CurvePoints {
  Matrix x;                ///< Configurations, a row for each point.
  Vector epochs;           ///< Numbers of epochs, from 1 on.
  std::vector<int> trial;  ///< Points of one trial have one number; kNoTrial: of a trial that has not begun.
  [[nodiscard]] Eigen::Index size() const { return epochs.size(); }
};
inline constexpr int kNoTrial = -1;

class CurveKernel {
 public:
  CurveKernel(const Inputs& inputs, const CurveHyperparameters& hyper);
  /// Covariances of every point of a with every point of b.
  [[nodiscard]] Matrix between(const CurvePoints& a, const CurvePoints& b) const;
  /// The covariance of a point with itself.
  [[nodiscard]] double variance() const;
  /// The part of it that a trial does not share with others of its configuration: chance.
  [[nodiscard]] double own_variance() const { return variances_[kOwnShape] + variances_[kOwnLevel]; }

 private:
  gp::Kernel configurations_;  ///< The kernel M over configurations, of variance 1.
  double epoch_weight_;        ///< 1 / l^2
  std::array<double, kParts> variances_{};
};

/// Distances between the points `points`, for the covariances among them; kept from one choice of hyperparameters to
/// the next.
class CurveDistances {
 public:
  CurveDistances(const Inputs& inputs, const CurvePoints& points);

  struct Covariance {
    std::array<Matrix, kParts> parts;  ///< Each with its variance.
    Matrix configuration_slope;        ///< The derivative of their sum by r^2 of M,
    Matrix epoch_slope;                ///< and by r^2 of T.
    [[nodiscard]] Matrix sum() const;
  };
  [[nodiscard]] Covariance at(const CurveHyperparameters& hyper) const;
  /// The derivatives of sum_ij weights_ij k_ij: by the logarithms of the lengths, the epochs' length, and the
  /// variances.
  [[nodiscard]] Vector gradient(const CurveHyperparameters& hyper, const Covariance& covariance,
                                const Matrix& weights) const;

 private:
  gp::Distances configurations_;
  Matrix epochs_;  ///< Squared differences of logarithms.
  Matrix same_;    ///< 1 where two points are of one trial.
};

}  // namespace hfta::search::freeze_thaw
