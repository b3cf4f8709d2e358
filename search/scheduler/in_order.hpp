#pragma once
/// Rules that judge a trial by the trials drawn before it. Internal to search/scheduler.

#include <functional>
#include <memory>
#include <vector>

#include "search/scheduler.hpp"

namespace hfta::search {

/// A number of a trial after an epoch: its value there, its best value up to there, the mean of its values up to there.
enum class Number { kLast, kBest, kMean };

struct InOrderRule {
  int max_epochs = 1;
  std::vector<int> epochs;  ///< Epochs after which trials are judged, ascending, below max_epochs.
  Number own = Number::kLast, others = Number::kLast;
  /// Whether a trial stops. `others`: the numbers of the trials drawn before it that came as far, ascending.
  std::function<bool(double own, const std::vector<double>& others)> stops;
};

/// After each epoch of the rule, trials are judged in the order of their draws, each as soon as all before it have been
/// judged there or have ended sooner; until then it waits. Throws Error{kConfig} for max_epochs below 1.
[[nodiscard]] std::unique_ptr<Scheduler> make_in_order(InOrderRule rule, trials::Goal goal);

}  // namespace hfta::search
