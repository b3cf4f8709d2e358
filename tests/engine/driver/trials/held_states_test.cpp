// The account of states that wait in memory, without a table of trials.

#include "engine/driver/trials/held_states.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "base/random.hpp"

using namespace hfta;
using namespace hfta::engine;

TEST_CASE("held states are counted with their latest size, and told of once to be saved") {
  HeldStates held;
  held.hold(3, 10, true);
  held.hold(1, 5, false);
  held.hold(3, 30, true);
  CHECK(held.bytes() == 35);
  CHECK(held.by_draw() == std::map<int, std::size_t>{{1, 5}, {3, 30}});
  CHECK(held.take_unsaved() == std::set<int>{3});
  CHECK(held.take_unsaved().empty());
  CHECK(held.bytes() == 35);
  held.hold(1, 6, true);
  held.hold(1, 7, false);  // it was saved meanwhile
  CHECK(held.take_unsaved().empty());
  held.hold(1, 8, true);
  held.let_go(1);
  held.let_go(2);  // which holds nothing
  CHECK(held.take_unsaved().empty());
  CHECK(held.bytes() == 30);
}

TEST_CASE("bytes of held states are the sum over all that hold one") {
  HeldStates held;
  CountedRandom random(1, Stream::kSimulation, 0);
  for (int step = 0; step < 2000; ++step) {
    const auto draw = static_cast<int>(random.below(50));
    if (random.below(3) == 0) {
      held.let_go(draw);
    } else {
      held.hold(draw, static_cast<std::size_t>(random.below(1000)), random.below(2) == 0);
    }
    std::size_t sum = 0;
    for (const auto& [holder, bytes] : held.by_draw()) sum += bytes;
    REQUIRE(held.bytes() == sum);
  }
}
