#pragma once
/// Configurations that another program asked for, perhaps only in part: checked against the space and completed.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "search/constraints.hpp"
#include "trials/space.hpp"
#include "trials/trial.hpp"

namespace hfta::search {

/// A configuration of the space.
struct Completion {
  trials::Params params;  ///< All that apply, in the order of the space; none if there is a problem: nothing was tried.
  std::string problem = {};  ///< Why it cannot be tried, one line; empty if it can.
};

/// Takes the values of `fixed` that the space can give, and draws the rest as random search does, again until all
/// that was given applies and the constraints are met, at most 10'000 times; a function of (seed, number) alone, which
/// shares no random numbers with a sampler's draws.
[[nodiscard]] Completion complete(const trials::Space& space, const trials::Params& fixed, std::uint64_t seed,
                                  int number, const std::vector<Constraint>& constraints = {});

/// `value` as the distribution itself gives it: 1 becomes 1.0 if the type is a float, 64.0 becomes the integer 64, and
/// a value that a rounding puts outside a bound or beside a multiple of q is moved to the bound or multiple. nullopt if
/// the distribution cannot give it.
[[nodiscard]] std::optional<trials::ParamValue> admit(const trials::Distribution& distribution,
                                                      const trials::ParamValue& value);

}  // namespace hfta::search
