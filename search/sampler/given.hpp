#pragma once
/// Draws some of whose values are given (Sampler::ask()). Internal to samplers that learn.

#include "trials/trial.hpp"

namespace hfta::search {

/// `params` with the values that `given` has of its parameters.
[[nodiscard]] trials::Params with_given(trials::Params params, const trials::Params& given);

/// Whether `params` has all values of `given`.
[[nodiscard]] bool has_given(const trials::Params& params, const trials::Params& given);

}  // namespace hfta::search
