#pragma once
/// Configurations that somebody else asked for, perhaps only in part: checked against the space and made whole.

#include <cstdint>
#include <optional>
#include <string>

#include "trials/space.hpp"
#include "trials/trial.hpp"

namespace hfta::search {

/// A configuration of the space.
struct Completion {
  trials::Params
      params;           ///< Every parameter, in the order of the space; where there is a problem, those that are fine.
  std::string problem;  ///< Why it cannot be tried, one line; empty if it can.
};

/// Takes `fixed` where the space can give those values, and draws the rest as random search does; a function of (seed,
/// number) alone, which shares no numbers with a sampler's draws.
[[nodiscard]] Completion complete(const trials::Space& space, const trials::Params& fixed, std::uint64_t seed,
                                  int number);

/// `value` as the distribution itself gives it: 1 becomes 1.0 where numbers are meant, 64.0 the integer 64, and what
/// lies a rounding outside a bound or beside a multiple of q is put there. nullopt if the distribution cannot give it.
[[nodiscard]] std::optional<trials::ParamValue> admit(const trials::Distribution& distribution,
                                                      const trials::ParamValue& value);

}  // namespace hfta::search
