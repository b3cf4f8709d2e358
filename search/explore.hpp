#pragma once
/// A value near another one of the same distribution.

#include "trials/space.hpp"

namespace hfta::search {

/// A number times 1.2 (`up`) or 0.8, put back among the distribution's values: between its ends, on its grid, where it
/// moves by one step at least unless it is at an end; 0 moves up or down. A number without a grid that is 0 stays. For
/// a list: the next value above or below that can be drawn, if there is one. `value` must be the distribution's.
[[nodiscard]] trials::ParamValue moved(const trials::Distribution& distribution, const trials::ParamValue& value,
                                       bool up);

}  // namespace hfta::search
