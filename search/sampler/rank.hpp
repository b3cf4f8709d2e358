#pragma once
/// The order of trials, best first. Internal to samplers.

#include <tuple>

#include "search/history.hpp"

namespace hfta::search {

/// Best first: COMPLETE ones by value, then PRUNED ones, those that came further first, then those that have failed.
struct Rank {
  int group = 0;
  double epochs = 0, value = 0;

  [[nodiscard]] bool has_failed() const { return group == 2; }
  [[nodiscard]] bool operator<(const Rank& other) const {
    return std::tie(group, epochs, value) < std::tie(other.group, other.epochs, other.value);
  }
};

/// The rank of a trial that has ended.
[[nodiscard]] inline Rank rank_of(const SeenTrial& trial, trials::Goal goal) {
  if (trial.ended == trials::State::kFail || trial.values.empty()) return {2, 0, 0};
  const double value = goal == trials::Goal::kMinimize ? *trial.value() : -*trial.value();
  if (trial.ended == trials::State::kComplete) return {0, 0, value};
  return {1, -static_cast<double>(trial.curve.size()), value};
}

}  // namespace hfta::search
