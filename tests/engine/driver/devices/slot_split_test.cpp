// How slots are divided among unequal devices, beside all divisions tried one by one; and what is known of the times.

#include "engine/driver/devices/slot_split.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/random.hpp"
#include "engine/driver/devices/epoch_times.hpp"

using namespace hfta;
using namespace hfta::engine;

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// For each number of slots up to `most`, the best division of all: times as split_slots() compares them.
class EveryDivision {
 public:
  EveryDivision(const std::vector<SlotTimes>& devices, int most)
      : devices_(devices), best_(static_cast<std::size_t>(most) + 1, kNever), found_(best_.size()) {
    division_.reserve(devices.size());
    try_all(0, 0);
  }
  [[nodiscard]] double time(int slots) const { return best_[static_cast<std::size_t>(slots)]; }
  [[nodiscard]] const std::vector<int>& division(int slots) const { return found_[static_cast<std::size_t>(slots)]; }

 private:
  // The first device gets as many as it can first, so that the first of several equal divisions is the wanted one.
  void try_all(std::size_t used, double time) {
    if (division_.size() == devices_.size()) {
      if (time < best_[used]) best_[used] = time, found_[used] = division_;
      return;
    }
    const SlotTimes& table = devices_[division_.size()];
    for (std::size_t b = std::min(table.size(), best_.size() - used); b-- > 0;) {
      if (b > 0 && !std::isfinite(table[b])) continue;
      division_.push_back(static_cast<int>(b));
      try_all(used + b, std::max(time, b > 0 ? table[b] : 0));
      division_.pop_back();
    }
    if (table.empty()) {
      division_.push_back(0);
      try_all(used, time);
      division_.pop_back();
    }
  }

  const std::vector<SlotTimes>& devices_;
  std::vector<double> best_;
  std::vector<std::vector<int>> found_;
  std::vector<int> division_;
};

// Tables that grow, that are flat, that have gaps where memory does not suffice, and that are in no order at all.
SlotTimes some_table(CountedRandom& random) {
  SlotTimes table(random.below(50) == 0 ? 0 : 1 + random.below(65));
  const auto kind = random.below(4);
  const double slope = 0.1 + random.uniform();
  for (std::size_t b = 1; b < table.size(); ++b) {
    const auto slots = static_cast<double>(b);
    table[b] = kind == 0   ? slope * slots
               : kind == 1 ? 5 + slope * std::ceil(slots / 8)
               : kind == 2 ? 1 + static_cast<double>(random.below(6))  // many ties
                           : random.uniform();
    if (random.below(20) == 0) table[b] = random.below(2) == 0 ? kNever : std::nan("");
  }
  if (!table.empty()) table[0] = random.below(2) == 0 ? 0 : kNever;  // not read
  return table;
}

EpochTimes::Device device(double speed, std::function<double(int)> predicted = nullptr) {
  return {speed, [predicted](const std::string&, int slots) {
            return predicted ? std::optional(predicted(slots)) : std::nullopt;
          }};
}

}  // namespace

TEST_CASE("slots are divided as the best of all divisions, for each number of slots and any table") {
  constexpr int kMost = 64;
  int impossible = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    CountedRandom random(1, Stream::kSimulation, 7, i);
    std::vector<SlotTimes> devices(i % 20 == 19 ? 4 : 1 + i % 3);
    for (SlotTimes& table : devices) table = some_table(random);
    const EveryDivision all(devices, kMost);
    for (int slots = 0; slots <= kMost; ++slots) {
      const std::optional<std::vector<int>> division = split_slots(slots, devices);
      CAPTURE(i, slots);
      if (all.time(slots) == kNever) {
        REQUIRE_FALSE(division);
        ++impossible;
      } else {
        REQUIRE(division == all.division(slots));
        REQUIRE(longest(*division, devices) == all.time(slots));
      }
    }
  }
  CHECK(impossible > 100);
}

TEST_CASE("divisions that can be told without a table") {
  const SlotTimes fast = {0, 1, 2, 3, 4, 5, 6, 7, 8}, slow = {0, 3, 6, 9, 12, 15, 18, 21, 24};
  const SlotTimes flat = {0, 2, 2, 2, 2, 2, 2, 2, 2};
  struct Case {
    int slots;
    std::vector<SlotTimes> devices;
    std::optional<std::vector<int>> wanted;
  };
  const std::vector<Case> cases = {
      {8, {fast, slow}, {{6, 2}}},
      {8, {slow, fast}, {{2, 6}}},
      {2, {fast, slow}, {{2, 0}}},     // the slow one would only be waited for
      {8, {fast, flat}, {{2, 6}}},     //
      {8, {flat, flat}, {{8, 0}}},     // one is enough
      {8, {fast, {}}, {{8, 0}}},       // no room there
      {9, {fast, {0}}, std::nullopt},  //
      {16, {fast, slow}, {{8, 8}}},    // all that there is
      {3, {{0, 5, 1, kNever}, {0, 1}}, {{2, 1}}},
      {0, {fast, slow}, {{0, 0}}},
      {0, {}, {std::vector<int>{}}},
      {1, {}, std::nullopt},
  };
  for (const Case& c : cases) {
    CAPTURE(c.slots, c.devices);
    CHECK(split_slots(c.slots, c.devices) == c.wanted);
  }
}

TEST_CASE("a device's times are predicted from its speed until epochs are measured") {
  EpochTimes times({device(1), device(4), device(1)});
  const std::vector<std::size_t> all = {0, 1, 2};
  CHECK(times.tables("p", all, {2, 2, 0}) == std::vector<SlotTimes>{{0, 1, 2}, {0, 0.25, 0.5}, {0}});
  times.add(0, "p", 2, 20);  // 10 s a slot: the others as their speeds have it
  CHECK(times.tables("p", all, {2, 2, 1}) == std::vector<SlotTimes>{{0, 10, 20}, {0, 2.5, 5}, {0, 10}});
  times.add(1, "p", 4, 200);  // it is the slower one, whatever was said
  CHECK(times.tables("p", all, {1, 1, 1}) == std::vector<SlotTimes>{{0, 10}, {0, 50}, {0, 10}});
  times.add(0, "q", 1, 1);  // of another partition: as much slower as in the first
  CHECK(times.tables("q", all, {1, 1, 1}) == std::vector<SlotTimes>{{0, 1}, {0, 5}, {0, 1}});
}

TEST_CASE("epochs of no time at all change nothing") {
  EpochTimes times({device(1), device(2)});
  for (const double seconds : {0.0, -1.0, std::nan(""), kNever}) times.add(0, "p", 4, seconds);
  CHECK(times.tables("p", {0, 1}, {1, 1}) == std::vector<SlotTimes>{{0, 1}, {0, 0.5}});
}

TEST_CASE("a predicted table keeps its shape, and measured epochs scale it") {
  const auto flat = [](int slots) { return slots <= 8 ? 2.0 : 4.0; };
  EpochTimes times({device(1, flat), device(1, flat)});
  times.add(0, "p", 3, 20);  // 10 times what a step was predicted to take
  const std::vector<SlotTimes> tables = times.tables("p", {0, 1}, {9, 9});
  CHECK(tables[0][1] == 20);
  CHECK(tables[0][9] == 40);
  CHECK(tables[1] == tables[0]);  // it was measured nowhere else
}

TEST_CASE(
    "a device that becomes slower is seen within three epochs, and an array's first epoch counts for nothing later") {
  EpochTimes times({device(1)});
  const auto now = [&] { return times.tables("p", {0}, {1})[0][1]; };
  times.add(0, "p", 4, 100);
  CHECK(now() == 25);
  for (int i = 0; i < 5; ++i) times.add(0, "p", 4, 4);
  CHECK(now() == 1);
  for (int i = 0; i < 3; ++i) times.add(0, "p", 4, 12);
  CHECK(now() >= 2.7);
}
