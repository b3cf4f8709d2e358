#pragma once
/// Finds where an acquisition is largest. Internal to the gp sampler.

#include <functional>
#include <optional>
#include <vector>

#include "base/random.hpp"
#include "search/sampler/gp/acquisition.hpp"

namespace hfta::search::gp {

/// Points of the unit cube to look at first, and places around which to look closer, a row for each.
struct Beginnings {
  std::vector<std::vector<double>> cube;
  Matrix good;
};

/// The decimal logarithms of the least and the largest standard deviation of a move on the unit scale; a move's is
/// drawn evenly between them.
struct Reach {
  double least, most;
};

/// Configurations beside each of `good` places, a row for each: a part of the numbers moved, or a category drawn anew.
[[nodiscard]] std::vector<Vector> neighbours(const Inputs& inputs, const Matrix& good, const Reach& reach,
                                             CountedRandom& random);

/// The best configuration found that has the `given` numbers and for which `allowed` is true, nullopt if there is none.
/// The best of the beginnings are improved, each in turn: numbers together, by their gradient; then steps and
/// categories one after the other, by trying all values or, where they are many, steps of several sizes. Deterministic;
/// so many evaluations at most.
[[nodiscard]] std::optional<Vector> maximize(const Inputs& inputs, const Acquisition& acquisition,
                                             const Beginnings& beginnings, const GivenNumbers& given,
                                             CountedRandom& random, const std::function<bool(const Vector&)>& allowed);

}  // namespace hfta::search::gp
