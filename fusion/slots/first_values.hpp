#pragma once
/// First values of a slot's weights.

#include <ATen/core/Tensor.h>

#include <span>

#include "base/random.hpp"
#include "fusion/graph.hpp"

namespace hfta::fusion {

/// The values of the weight's file, as a tensor in the memory that Weight::stored keeps: many share it, and nobody may
/// write to it. Throws Error{kInternal} if there is none of its shape.
[[nodiscard]] at::Tensor stored_values(const Weight& weight);

/// A weight's first values, on the host: stored_values() if it starts from the file, which nobody may write to; else in
/// float64. Draws are the same for any type of weight. `hypers`: Graph::hypers of the slot; what it uses of a
/// padded weight is drawn as if that were all, and the rest is zero. Throws Error{kInternal} for a number that is no
/// size within the weight's.
[[nodiscard]] at::Tensor first_values(const Weight& weight, CountedRandom random, std::span<const double> hypers);

}  // namespace hfta::fusion
