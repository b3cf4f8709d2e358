#pragma once
/// Operations on a distribution: check it, draw from it, list its values.

#include <optional>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "trials/space.hpp"

namespace hfta::search {

/// Throws Error{kConfig} saying what is wrong ("min: found 3, wanted at most max = 1"); the caller adds the place.
void validate(const trials::Distribution& distribution);
/// Every parameter's distribution, and what Space promises. Throws Error{kConfig} naming the parameter: as above, for a
/// name that stands twice, and for a condition on a parameter that is not there or that depends on this one.
void validate(const trials::Space& space);
/// Names of the parameters whose conditions lead back to themselves, and of those that depend on such ones, in order.
[[nodiscard]] std::vector<std::string> in_circles(const trials::Space& space);

/// One value; deterministic in `random`'s position. q_* give the nearest multiple of q as W&B does, half to even, which
/// may lie up to q/2 outside min..max; a decimal q gives decimals (0.3, not 0.30000000000000004). int_uniform, and q_*
/// with `integer`, give integers. The distribution must be valid, here and below.
[[nodiscard]] trials::ParamValue sample(const trials::Distribution& distribution, CountedRandom& random);

/// The value that has a share `u` (0 to 1) of the probability below it, in the order of enumerate(): a uniform `u`
/// gives what `sample` gives.
[[nodiscard]] trials::ParamValue quantile(const trials::Distribution& distribution, double u);

/// Every value that `sample` can give, in order, if they are finitely many (constant, categorical, int_uniform,
/// q_uniform, q_log_uniform*, any range of one point): what grid search walks, categorical values of probability 0
/// included. nullopt otherwise, and above 1'000'000 values.
[[nodiscard]] std::optional<std::vector<trials::ParamValue>> enumerate(const trials::Distribution& distribution);

/// Values that validation tries: every categorical value; otherwise the two ends as `sample` gives them (normal kinds:
/// mu +- 4 sigma), or the one value where they are the same.
[[nodiscard]] std::vector<trials::ParamValue> extremes(const trials::Distribution& distribution);

}  // namespace hfta::search
