#pragma once
// The same graph compiled in float, judged by what it gives in double.

#include "gradient_check.hpp"

namespace hfta::fusion::cpu::testing {

/// Output, loss and gradients, each relative to its largest element.
void check_float(const SmallGraph& small, double tolerance = 1e-5);

}  // namespace hfta::fusion::cpu::testing
