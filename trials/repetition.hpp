#pragma once
/// Repetitions: trials of one configuration under several seeds, and on several folds of the data. Which trial is which
/// repetition of which configuration, and what a configuration has come to.
///
/// A study's draws are dealt in blocks: with n repetitions, draws n * c to n * c + n - 1 are those of configuration c.
/// A repetition is a trial like any other, and says which one it is in two parameters, `repeat` and `fold`, each there
/// only if there is more than one of it.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trials/space.hpp"
#include "trials/trial.hpp"

namespace hfta::trials {

/// The statistic that makes one value of the values of a configuration's repetitions.
enum class Rank {
  kMean,
  kLower,   ///< The worse end of the mean's 95 % confidence interval.
  kMedian,  ///< The median; of an even number of values, the mean of the two in the middle.
};
/// "mean", "lower", "median".
[[nodiscard]] const char* name_of(Rank rank);
/// All names, in the order of Rank.
[[nodiscard]] const std::vector<std::string>& rank_names();
/// The rank of that name; kMean for any other word.
[[nodiscard]] Rank rank_from(std::string_view name);

/// The parameters that tell repetitions apart.
inline constexpr const char* kRepeat = "repeat";
inline constexpr const char* kFold = "fold";

/// The repetitions of each configuration of a study: `seeds` times `folds` trials.
struct Repetitions {
  int seeds = 1;  ///< `repeat`: trials that differ in their seed alone.
  int folds = 1;  ///< Parts of the training data, each of which validates once.
  Rank rank = Rank::kMean;

  [[nodiscard]] int count() const { return seeds * folds; }
  [[nodiscard]] bool any() const { return count() > 1; }
  [[nodiscard]] int configuration_of(int draw) const { return draw / count(); }
  [[nodiscard]] int index_of(int draw) const { return draw % count(); }
  /// The first draw of the configuration that `draw` belongs to.
  [[nodiscard]] int first_of(int draw) const { return draw - index_of(draw); }
  /// How many configurations the first `draws` draws begin.
  [[nodiscard]] int configurations_in(int draws) const { return draws / count() + (draws % count() > 0 ? 1 : 0); }
  /// The draw behind the last one of the configuration of draw `draws - 1`: `draws` where no configuration is cut
  /// short.
  [[nodiscard]] int rounded_up(int draws) const { return configurations_in(draws) * count(); }

  /// `repeat` and `fold` as parameters: integers from 0.
  [[nodiscard]] Space axes() const;
  /// A configuration's parameters with those of its repetition `index`: seed index / folds, fold index % folds.
  [[nodiscard]] Params params_of(const Params& configuration, int index) const;
  /// A trial's parameters without `repeat` and `fold`.
  [[nodiscard]] Params configuration_of(const Params& trial) const;

  bool operator==(const Repetitions&) const = default;
};

inline constexpr double kConfidence = 0.95;  ///< Confidence of every interval that is shown or ranked by.

/// Summary statistics of several measurements of one quantity.
struct Summary {
  int count = 0;
  double mean = 0;
  double deviation = 0;      ///< The sample's standard deviation, with n - 1; NaN for one value.
  double low = 0, high = 0;  ///< The mean's interval by Student's t with n - 1 degrees of freedom; NaN for one value.
  double median = 0;
};

/// REQUIRES at least one value, all finite, and a confidence within 0..1. The interval covers the mean of a normal
/// distribution with the probability `confidence`, if the values are independent draws from it.
[[nodiscard]] Summary summarize(std::vector<double> values, double confidence = kConfidence);

/// The value of a configuration whose repetitions have these values. A value that is not finite (the trial diverged)
/// counts as infinitely bad. So a mean over it is not finite (the result is then NaN), and a median may be.
[[nodiscard]] double value_of(const std::vector<double>& values, Rank rank, Goal goal);

/// A configuration of a study, with its trials so far.
struct Configuration {
  int index = 0;
  std::vector<const Trial*> trials = {};  ///< Its repetitions, in order of draw; the last ones may not be there yet.
  double value = 0;                       ///< See value_of; NaN unless all are COMPLETE, but for failed ones.
};

/// `drawn`: the study's trials in order of draw; they must outlive the result.
[[nodiscard]] std::vector<Configuration> configurations_of(const std::vector<const Trial*>& drawn,
                                                           const Repetitions& repetitions, Goal goal);

/// The best repetition of the best configuration, ties to the lower draw. Where no configuration has a finite value:
/// the best COMPLETE trial; nullptr if there is none.
[[nodiscard]] const Trial* best_of(const std::vector<const Trial*>& drawn, const Repetitions& repetitions, Goal goal);

/// The best configuration's value; unset while no configuration is whole and has a finite one.
[[nodiscard]] std::optional<double> best_value(const std::vector<const Trial*>& drawn, const Repetitions& repetitions,
                                               Goal goal);

/// The trials in the order of their draws; `numbers` has the trial's number for each draw. The result ends before the
/// first number that has no trial.
[[nodiscard]] std::vector<const Trial*> in_order(const std::vector<Trial>& trials, const std::vector<int>& numbers);

}  // namespace hfta::trials
