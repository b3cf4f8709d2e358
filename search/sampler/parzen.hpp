#pragma once
/// A density over a search space, estimated from configurations: a mixture of one kernel for each, and one for the
/// space as a whole. Internal to the TPE sampler.
///
/// Bergstra et al., "Algorithms for Hyper-Parameter Optimization" (NIPS 2011), section 4, with kernels that are
/// products over the parameters (Falkner et al., "BOHB", ICML 2018), and bandwidths, weights and smoothing of
/// categories as Optuna 5 has them (optuna/samplers/_tpe/parzen_estimator.py).

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "search/unit_scale.hpp"
#include "trials/space.hpp"

namespace hfta::search {

/// A parameter as the estimator sees it.
class Axis {
 public:
  explicit Axis(const trials::Distribution& distribution);

  /// One value: a part of the unit scale, or the number of a category.
  struct Point {
    UnitScale::Part part;
    std::int64_t category = 0;
  };
  [[nodiscard]] Point point_of(const trials::ParamValue& value) const;
  [[nodiscard]] trials::ParamValue value_at(const Point& point) const;

  [[nodiscard]] const std::optional<UnitScale>& scale() const { return scale_; }
  /// The prior probabilities of the categories.
  [[nodiscard]] const std::vector<double>& prior() const { return prior_; }

 private:
  trials::Distribution distribution_;
  std::optional<UnitScale> scale_;  ///< Unset: categories.
  std::vector<double> prior_;
};

using Axes = std::vector<Axis>;
/// The axes of a space, one for each parameter; a parameter with one value becomes a constant.
[[nodiscard]] Axes axes_of(const trials::Space& space);
/// One for each axis.
using Points = std::vector<Axis::Point>;
/// Points on some of the axes, each with the index of its axis.
using GivenPoints = std::vector<std::pair<std::size_t, Axis::Point>>;

/// The points of the values that `given` has for parameters of `space`; `axes`: the axes of `space`.
[[nodiscard]] GivenPoints given_points(const trials::Space& space, const Axes& axes, const trials::Params& given);

/// Immutable.
class Parzen {
 public:
  /// If `observed` has over 25, the first weigh least, from 1/n for the first of n up to 1. `axes` must outlive this.
  Parzen(const Axes& axes, const std::vector<Points>& observed);

  /// The given coordinates of a point, and the weights that this density's kernels have under them.
  struct Condition {
    GivenPoints given;
    std::vector<double> weights;
  };
  [[nodiscard]] Condition under(GivenPoints given) const;

  [[nodiscard]] Points sample(CountedRandom& random) const { return sample(random, weights_); }
  [[nodiscard]] Points sample(CountedRandom& random, const Condition& condition) const;
  /// The logarithm of the density; along axes whose values are countable, of the probability.
  [[nodiscard]] double log_density(const Points& points) const;

 private:
  // One axis of all kernels; the last kernel is the whole space's.
  struct Marginal {
    std::vector<double> mu, sigma,
        log_mass;                        ///< Truncated normals on the unit scale, and the log of what is within it.
    std::vector<std::int64_t> category;  ///< -1: the whole space's.
  };
  [[nodiscard]] static Marginal numeric(const std::vector<double>& observed);
  [[nodiscard]] Points sample(CountedRandom& random, const std::vector<double>& weights) const;
  [[nodiscard]] Axis::Point sample(std::size_t axis, std::size_t kernel, CountedRandom& random) const;
  [[nodiscard]] double log_density(std::size_t axis, std::size_t kernel, const Axis::Point& point) const;
  [[nodiscard]] std::size_t kernels() const { return weights_.size(); }

  const Axes& axes_;
  std::vector<double> weights_;  ///< Weights of the kernels; they sum to 1.
  std::vector<Marginal> marginals_;
};

}  // namespace hfta::search
