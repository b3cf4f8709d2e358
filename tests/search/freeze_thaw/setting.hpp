#pragma once
// What the tests of freeze-thaw share: spaces, options, a process over curves.

#include <catch2/catch.hpp>
#include <cmath>
#include <set>
#include <string>

#include "search/freeze_thaw/planner.hpp"
#include "search/scheduler.hpp"
#include "tests/trials/distributions.hpp"

namespace hfta::search::freeze_thaw::testing {

using trials::Params;
using trials::Space;
using trials::testing::bounded;
using trials::testing::categorical;
using trials::testing::integer;

inline const Space kPlane = {{"x", bounded(trials::DistributionKind::kUniform, 0, 1)},
                             {"y", bounded(trials::DistributionKind::kUniform, 0, 1)}};
inline const Space kSplit = {{"x", bounded(trials::DistributionKind::kUniform, 0, 1)},
                             {"hidden", categorical({integer(8), integer(16), integer(32)})}};
inline const std::set<std::string> kNone;

inline CurveHyperparameters hyper() {
  return {Vector::Constant(2, std::log(0.5)),
          std::log(0.7),
          {std::log(1.0), std::log(0.4), std::log(0.3), std::log(0.2), std::log(0.1)},
          std::log(0.05)};
}

inline FreezeThawOptions options_of(int slots, int max_epochs = 9) {
  return {.max_epochs = max_epochs, .startup_trials = 3, .slots = slots, .eta = 3, .random_percent = 0};
}

inline Params at(double x, double y) { return {{"x", x}, {"y", y}}; }

}  // namespace hfta::search::freeze_thaw::testing
