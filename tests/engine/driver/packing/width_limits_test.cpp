// The most slots of arrays, by device and partition.

#include "engine/driver/packing/width_limits.hpp"

#include <catch2/catch.hpp>
#include <optional>
#include <vector>

using namespace hfta::engine;

TEST_CASE("a device recommends a width once for each partition") {
  std::vector<int> asked;
  WidthLimits limits(std::nullopt, [&](std::size_t device, int draw) {
    asked.push_back(draw);
    return device == 0 ? 40 : 0;
  });
  CHECK(limits.widest() == 16);
  CHECK(limits.limit(0, "a", 3) == 40);
  CHECK(limits.limit(0, "a", 4) == 40);
  CHECK(limits.limit(0, "b", 5) == 40);
  CHECK(limits.limit(1, "a", 6) == 1);  // at least one slot
  CHECK(asked == std::vector<int>{3, 5, 6});
  CHECK(limits.widest() == 40);
}

TEST_CASE("the config's width is everybody's limit, and nobody is asked") {
  WidthLimits limits(4, [](std::size_t, int) {
    FAIL("a device was asked");
    return 0;
  });
  CHECK(limits.limit(0, "a", 0) == 4);
  CHECK(limits.limit(1, "b", 0) == 4);
  CHECK(limits.widest() == 16);
}

TEST_CASE("where memory did not suffice the limit is half of what was tried, there alone") {
  WidthLimits limits(9, [](std::size_t, int) { return 0; });
  CHECK(limits.limit(0, "a", 0) == 9);
  limits.halve(0, "a", 5);  // an array may be narrower than the limit
  CHECK(limits.limit(0, "a", 0) == 2);
  CHECK(limits.limit(0, "b", 0) == 9);
  CHECK(limits.limit(1, "a", 0) == 9);
  limits.halve(0, "a", 1);
  CHECK(limits.limit(0, "a", 0) == 1);
  limits.halve(1, "c", 8);  // a limit that nobody asked for yet
  CHECK(limits.limit(1, "c", 0) == 4);
}
