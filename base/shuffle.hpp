#pragma once
/// A random order.

#include <cstddef>
#include <utility>
#include <vector>

#include "base/random.hpp"

namespace hfta {

/// Puts the values into an order of which each is equally likely: Fisher and Yates' shuffle, from the last place on
/// (R. Durstenfeld, Algorithm 235, CACM 7(7), 1964). Draws a number for each place but the first.
template <typename T>
void shuffle(std::vector<T>& values, CountedRandom& random) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.below(i)]);
}

}  // namespace hfta
