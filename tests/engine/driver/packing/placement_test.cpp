// Which partition a device works on, from facts alone.

#include "engine/driver/packing/placement.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

using namespace hfta::engine;

TEST_CASE("a device takes the partition that would take longest with it") {
  struct Case {
    std::vector<WaitingPartition> waiting;
    double speed;
    const char* wanted;
  };
  const std::vector<Case> cases = {
      {{{"a", 10, 0}}, 1, "a"},
      {{{"a", 10, 0}, {"b", 11, 0}}, 1, "b"},
      {{{"b", 10, 0}, {"a", 10, 0}}, 1, "a"},                 // a tie goes by name, in whatever order they come
      {{{"a", 10, 1}, {"b", 6, 0}}, 1, "b"},                  // 5 against 6
      {{{"a", 13, 1}, {"b", 6, 0}}, 1, "a"},                  // 6.5 against 6
      {{{"a", 10, 1}, {"b", 6, 0}}, 8, "a"},                  // a fast one: 10/9 against 6/8
      {{{"a", 10, 4}, {"b", 6, 0}}, 8, "a"},                  // 10/12 against 6/8
      {{{"a", 10, 8}, {"b", 6, 0}}, 8, "b"},                  // 10/16 against 6/8
      {{{"a", 9, 1}, {"b", 8, 0.5}, {"c", 2, 0}}, 0.5, "b"},  // 6, 8, 4
  };
  for (const Case& c : cases) {
    INFO(c.waiting.front().name << " " << c.waiting.front().work << ", speed " << c.speed);
    CHECK(partition_for(c.waiting, c.speed).name == c.wanted);
  }
}

TEST_CASE("devices of unlike speeds share partitions as their work asks") {
  // Nine units of speed come one by one, fast ones first: three times the work gets about three times the speed.
  std::vector<WaitingPartition> waiting = {{"large", 300, 0}, {"small", 100, 0}};
  for (const double speed : {4.0, 2.0, 1.0, 1.0, 1.0}) {
    const std::string chosen = partition_for(waiting, speed).name;
    for (WaitingPartition& partition : waiting) partition.speed += partition.name == chosen ? speed : 0;
  }
  CHECK(waiting[0].speed == 7);
  CHECK(waiting[1].speed == 2);
}

TEST_CASE("a partition is divided among the idle devices by its share of the work") {
  struct Case {
    double work, all;
    int idle, wanted;
  };
  for (const Case& c : {Case{10, 10, 4, 4}, Case{5, 10, 4, 2}, Case{1, 10, 4, 1}, Case{7, 10, 4, 3}, Case{10, 10, 0, 1},
                        Case{0, 0, 4, 1}}) {
    CHECK(parts_of(c.work, c.all, c.idle) == c.wanted);
  }
}
