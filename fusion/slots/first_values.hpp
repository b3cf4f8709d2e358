#pragma once
/// What a slot's weights begin with.

#include <ATen/core/Tensor.h>

#include <span>

#include "base/random.hpp"
#include "fusion/graph.hpp"

namespace hfta::fusion {

/// What the weight's file has, as a tensor in the memory that Weight::stored keeps: many share it, and nobody writes to
/// it. Throws Error{kInternal} if there is none of its shape.
[[nodiscard]] at::Tensor stored_values(const Weight& weight);

/// On the host: in the type that is stored, in the very memory that Weight::stored keeps, which nobody writes to; else
/// in float64. The same draws whatever the weight's own type. `hypers`: Graph::hypers of the slot; what it uses of a
/// padded weight is drawn as if that were all, and the rest is zero. Throws Error{kInternal} for a number that is no
/// size within the weight's.
[[nodiscard]] at::Tensor first_values(const Weight& weight, CountedRandom random, std::span<const double> hypers);

}  // namespace hfta::fusion
