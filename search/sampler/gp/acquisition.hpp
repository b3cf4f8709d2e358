#pragma once
/// The acquisition function: how much better than the best trial a configuration may be. Internal to the gp sampler.

#include <optional>

#include "search/sampler/gp/feasibility.hpp"
#include "search/sampler/gp/process.hpp"

namespace hfta::search::gp {

/// The multiple of the logarithm of the probability not to fail that is added to that of an improvement. 1 would be the
/// improvement expected of one trial alone. Such bets are never-ending: once the best that does not fail is nearly
/// found, nearly nothing is to be gained but beyond the border. Of 1, 2 and 4 on branin_disk and mixed_diverges
/// (bench/search, seeds from 100 on) the last finds the best values, with the fewest failures.
inline constexpr double kCaution = 4;

/// The logarithm of what one more configuration adds to the expected improvement of a batch (qEI), where others are
/// running: qEI of them all less qEI of those that run. The values that the running ones will have are sampled; for
/// each sample the expected improvement of the new one is known in closed form, and the mean is taken over samples
/// (greedy maximization: Wilson, Hutter and Deisenroth, "Maximizing acquisition functions for Bayesian optimization",
/// NeurIPS 2018). With none running this is LogEI. Where configurations have failed, a multiple of the logarithm of the
/// probability that this one does not is added (Gelbart, Snoek and Adams, "Bayesian Optimization with Unknown
/// Constraints", UAI 2014, with the multiple 1).
class Acquisition {
 public:
  /// Smaller values are better. `functions`: one for each sample, given what ended and the sample's values of what
  /// runs. `best`: the least value in each sample. `feasibility`: unset where none has failed.
  Acquisition(Posterior functions, Vector best, std::optional<Feasibility> feasibility);

  /// `gradient` may be nullptr.
  [[nodiscard]] double at(const Vector& x, Vector* gradient) const;
  /// at() for many points, a row for each.
  [[nodiscard]] Vector at(const Matrix& points) const;

 private:
  Posterior functions_;
  Vector best_;
  std::optional<Feasibility> feasibility_;
};

/// The acquisition with `running` under way, a row for each; `samples` standard normal numbers, a column for each
/// sample and a row for each that runs. `x`, `y` and `feasibility`: as above.
[[nodiscard]] Acquisition make_acquisition(const Inputs& inputs, const Hyperparameters& hyper, const Matrix& x,
                                           const Vector& y, const Matrix& running, const Matrix& samples,
                                           std::optional<Feasibility> feasibility);

}  // namespace hfta::search::gp
