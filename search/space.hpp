#pragma once
/// What can be done with a distribution: check it, draw from it, list it.

#include <optional>
#include <vector>

#include "base/random.hpp"
#include "trials/space.hpp"

namespace hfta::search {

/// Throws Error{kConfig} saying what is wrong ("min: found 3, wanted at most max = 1"); the caller adds the place.
void validate(const trials::Distribution& distribution);

/// One value; deterministic in `random`'s position.
[[nodiscard]] trials::ParamValue sample(const trials::Distribution& distribution, CountedRandom& random);

/// Every value in order if there are finitely many (constant, categorical, int_uniform, q_uniform, q_log_uniform*): what
/// grid search walks. nullopt otherwise, and above 1'000'000 values.
[[nodiscard]] std::optional<std::vector<trials::ParamValue>> enumerate(const trials::Distribution& distribution);

/// Values that validation tries: every categorical value; otherwise the two ends (normal kinds: mu +- 4 sigma).
[[nodiscard]] std::vector<trials::ParamValue> extremes(const trials::Distribution& distribution);

}  // namespace hfta::search
