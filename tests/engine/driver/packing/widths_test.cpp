// How wide arrays are.

#include "engine/driver/packing/widths.hpp"

#include <catch2/catch.hpp>
#include <optional>

using namespace hfta;
using namespace hfta::engine;

TEST_CASE("widths come out even") {
  struct Case {
    int waiting, limit, parts, width;
  };
  const Case cases[] = {{9, 8, 1, 5},    {8, 8, 1, 8},    {1, 8, 1, 1},      {16, 8, 1, 8}, {17, 8, 1, 6},
                        {3, 100, 1, 3},  {16, 16, 2, 8},  {16, 16, 3, 6},    {2, 16, 3, 1}, {5, 1, 1, 1},
                        {49, 16, 1, 13}, {49, 16, 2, 13}, {7, 1000000, 1, 7}};
  for (const Case& c : cases) {
    CAPTURE(c.waiting, c.limit, c.parts);
    CHECK(even_width(c.waiting, c.limit, c.parts) == c.width);
  }
  for (int waiting = 1; waiting <= 60; ++waiting) {
    for (int limit = 1; limit <= 20; ++limit) {
      const int width = even_width(waiting, limit, 1);
      REQUIRE(width <= limit);
      REQUIRE(width * ((waiting + limit - 1) / limit) >= waiting);  // no more arrays than the limit asks for
    }
  }
}

TEST_CASE("a width changes only where that pays") {
  struct Case {
    int width, wanted, limit;
    std::optional<int> better;
  };
  const Case cases[] = {{8, 8, 8, {}}, {8, 7, 8, {}},    {8, 6, 8, 6},  {8, 1, 8, 1}, {4, 3, 8, 3},
                        {3, 2, 8, 2},  {8, 20, 8, {}},   {5, 20, 8, 7}, {2, 9, 8, 5}, {6, 7, 8, {}},
                        {6, 8, 8, 8},  {16, 17, 16, {}}, {1, 1, 8, {}}, {1, 2, 8, 2}};
  for (const Case& c : cases) {
    CAPTURE(c.width, c.wanted, c.limit);
    CHECK(better_width(c.width, c.wanted, c.limit) == c.better);
  }
  for (int width = 1; width <= 20; ++width) {
    for (int wanted = 1; wanted <= 50; ++wanted) {
      const std::optional<int> better = better_width(width, wanted, 20);
      if (!better) continue;
      REQUIRE(*better <= 20);
      if (*better < width) REQUIRE(*better >= wanted);  // every trial in it keeps a slot
    }
  }
}
