// What changes of threads may cost of the time.

#include "engine/driver/devices/thread_changes.hpp"

#include <catch2/catch.hpp>

using namespace hfta;
using namespace hfta::engine;

TEST_CASE("threads are changed while that took a fiftieth of the time, and not where memory ran out") {
  ThreadChanges changes(2);
  CHECK(changes.cost(0) == 0);
  CHECK(changes.may_borrow(0, 0, 0));
  changes.add(0, 2);
  changes.add(0, 0);  // an epoch without a change
  CHECK(changes.cost(0) == 2);
  CHECK(!changes.may_borrow(0, 0, 99));
  CHECK(changes.may_borrow(0, 0, 100));
  CHECK(changes.may_borrow(0, 1, 0));  // it keeps what it has
  changes.add(0, 1);
  CHECK(changes.cost(0) == 1);
  CHECK(!changes.may_borrow(0, 0, 149));
  CHECK(changes.may_borrow(1, 0, 0));
  changes.forbid(0);
  CHECK(!changes.may_borrow(0, 1, 1e9));
  CHECK(changes.may_borrow(1, 1, 1e9));
}
