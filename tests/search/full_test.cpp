#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "search/scheduler.hpp"

using namespace hfta::search;

TEST_CASE("Full training gives every trial all its epochs") {
  const auto full = make_full(3);
  CHECK(full->capacity() == std::nullopt);
  CHECK(full->max_epochs() == 3);
  for (const int trial : {0, 1, 1'000'000}) {
    CHECK(full->target(trial) == 3);
    CHECK(full->report(trial, 1, 0.5) == Decision::kContinue);
    CHECK(full->report(trial, 2, -1e300) == Decision::kContinue);
    CHECK(full->report(trial, 3, 0) == Decision::kComplete);
  }
  full->fail(2);
  CHECK(full->take_verdicts().empty());
  CHECK(full->planned_epochs(0, 7) == 21);
  CHECK(full->planned_epochs(5, 2'000'000'000) == 6'000'000'000);
  CHECK(make_full(1)->report(0, 1, 0) == Decision::kComplete);
}

TEST_CASE("Full training stops a trial whose metric is not finite, in its last epoch too") {
  const double inf = std::numeric_limits<double>::infinity();
  const auto full = make_full(2);
  for (const double value : {std::nan(""), inf, -inf}) {
    CHECK(full->report(0, 1, value) == Decision::kStop);
    CHECK(full->report(1, 2, value) == Decision::kStop);
  }
}

TEST_CASE("Full training refuses epochs that cannot be") {
  for (const int epochs : {0, -1}) CHECK_THROWS_AS(make_full(epochs), hfta::Error);
  for (const int epoch : {0, -1, 4}) CHECK_THROWS_AS(make_full(3)->report(0, epoch, 1), hfta::Error);
}
