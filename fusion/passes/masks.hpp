#pragma once
/// Random masks that a model writes by hand, and whether they are dropout.

#include <cstddef>
#include <set>
#include <vector>

#include "fusion/graph.hpp"

namespace hfta::fusion {

/// floor(p + uniform), another way to write bernoulli(p): positions of the uniform tensor and of the floor.
struct Floored {
  std::set<std::size_t> uniform, floor;
};

/// `graph`: of with_complete_arguments, as below.
[[nodiscard]] Floored find_floored(const Graph& graph);

/// Positions of the calls that draw a mask whose effect vanishes at its mean: bernoulli(p) or floor(p + uniform) that
/// is only used as a factor, where the product is divided by p. These are stochastic depth and inverted dropout;
/// evaluation is then the identity, as in the modules that turn them off.
[[nodiscard]] std::set<std::size_t> inverted_dropout(const Graph& graph);

}  // namespace hfta::fusion
