// Which ways to run fit into a budget of memory, and how wide arrays are then: arithmetic.
#include "engine/fused/budget.hpp"

#include <catch2/catch.hpp>
#include <string>

namespace hfta::engine {
namespace {

WayNeed way(int workers, int threads, int recompute, std::int64_t slot, std::int64_t arena) {
  WayNeed one;
  one.lowering.executor = "compiled";
  one.lowering.workers = workers;
  one.lowering.threads_per_worker = threads;
  one.lowering.recompute = recompute;
  one.need = {slot, arena, 0};
  one.working = workers;
  return one;
}

// Two threads: keeping takes 100 an arena, computing again 60; a slot takes 10. Another executor takes 300.
std::vector<WayNeed> ways() {
  std::vector<WayNeed> all = {way(2, 1, 0, 10, 100), way(1, 2, 0, 10, 100), way(2, 1, 1, 10, 60), way(1, 2, 1, 10, 60),
                              way(2, 1, 0, 10, 300)};
  all.back().lowering.executor = "eager";
  return all;
}

std::string names(const std::vector<WayNeed>& all) {
  std::string text;
  for (const WayNeed& one : all) {
    const bool compiled = one.lowering.executor == "compiled";
    text += (text.empty() ? "" : "; ") + (compiled ? one.lowering.to_text() : one.lowering.executor);
  }
  return text;
}

}  // namespace

TEST_CASE("the ways that fit are let compete, and the array is as wide as all of them fit") {
  struct Case {
    std::int64_t room;
    int width;
    bool plenty;
    const char* open;
  };
  const Case cases[] = {
      {10000, 8, true, "compiled, 2 x 1 threads; eager"},  // which may be the faster one
      {300, 8, true, "compiled, 2 x 1 threads"},
      {220, 2, true, "compiled, 2 x 1 threads"},  // 2 slots and 2 arenas: both threads are busy
      // Not both: one arena, or smaller ones. 8 slots fit beside two of these, or beside a large one.
      {219, 8, false,
       "compiled, 1 x 2 threads; compiled, recompute 1, 2 x 1 threads; compiled, recompute 1, 1 x 2 threads"},
      {150, 3, false,
       "compiled, 1 x 2 threads; compiled, recompute 1, 2 x 1 threads; compiled, recompute 1, 1 x 2 threads"},
      {139, 3, false, "compiled, 1 x 2 threads; compiled, recompute 1, 1 x 2 threads"},
      {119, 5, false, "compiled, recompute 1, 1 x 2 threads"},
      // Two slots' weights do not fit: one slot, by whatever way.
      {79, 1, false, "compiled, recompute 1, 2 x 1 threads; compiled, recompute 1, 1 x 2 threads"}};
  for (const Case& c : cases) {
    INFO(c.room);
    const Budgeted found = within(ways(), c.room, 8, 2);
    CHECK(found.width == c.width);
    CHECK(found.plenty == c.plenty);
    CHECK(names(found.ways) == c.open);
    for (const WayNeed& one : found.ways) CHECK(one.total(found.width) <= c.room);
  }
  CHECK(names(within(ways(), 10000, 8, 2).spare) ==
        "compiled, 1 x 2 threads; compiled, recompute 1, 2 x 1 threads; compiled, recompute 1, 1 x 2 threads");
}

TEST_CASE("where no thread's slot fits there is no width, and the leanest way is named") {
  const Budgeted found = within(ways(), 69, 8, 2);
  CHECK(found.width == 0);
  CHECK_FALSE(found.plenty);
  CHECK(names(found.ways) == "compiled, recompute 1, 2 x 1 threads");
  const MemoryPlan plan = memory_plan(ways(), found, 69, 8);
  CHECK(plan.ways.size() == 4);  // of one executor
  for (const MemoryWay& one : plan.ways) CHECK((one.width == 0 && !one.open));
  CHECK(within(ways(), 70, 8, 2).width == 1);
}

TEST_CASE("what does not fit is told with what would") {
  const std::vector<WayNeed> keep = {way(2, 1, 0, 1 << 20, 100 << 20)}, again = {way(2, 1, 1, 1 << 20, 60 << 20)};
  CHECK(misfit_text({keep, again, 10 << 20, 64, 0}) ==
        "found 10.0 MiB, wanted at least 101.0 MiB: one trial takes 1.0 MiB for its weights and optimizer state, and "
        "100.0 MiB for a batch of 64 samples; with policy recompute 61.0 MiB would do");
  CHECK_THAT(misfit_text({keep, {}, 10 << 20, 64, 4}), Catch::EndsWith("64 samples; a batch of 4 would fit"));
  CHECK_THAT(
      misfit_text({keep, {}, 10 << 20, 64, 0, 2}),
      Catch::Contains(": one trial takes in each of 2 stages about 1.0 MiB for its weights and optimizer state, "));
  CHECK_THAT(misfit_text({keep, {}, (101 << 20) - 8, 64, 0, 1, 2}),
             Catch::StartsWith("found 105906168 bytes for each of 2 devices, wanted at least 105906176 bytes: "));
}

}  // namespace hfta::engine
