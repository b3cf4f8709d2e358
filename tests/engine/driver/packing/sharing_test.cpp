// The classes that decide about slots: how a partition's trials are divided, which partition a device turns to, and
// when trials are drawn. Two devices and a queue, without a scheduler of arrays.

#include "engine/driver/packing/sharing.hpp"

#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/driver/packing/partition_choice.hpp"
#include "engine/driver/packing/slot_draws.hpp"
#include "study_fixture.hpp"

using namespace hfta;
using namespace hfta::engine;
using namespace hfta::engine::testing;

namespace {

constexpr int kWidth = 8;

struct TwoDevices {
  // `trials`: their partitions by draw; all wait.
  TwoDevices(const StudyConfig& study_config, const std::vector<std::string>& trials)
      : config(study_config), table(config, {*config.run_cap}) {
    for (const std::string& partition : trials) {
      const int draw = table.add(table.drawn(), {{"hidden", partition}});
      table.assign(draw, partition);
      queue.push(draw);
    }
  }
  // Opens an array on a device, with these trials.
  void open(std::size_t device, const std::string& partition, int width, const std::vector<int>& draws) {
    devices.array(device) = std::make_unique<OpenArray>(
        0, partition, width, devices.trainer(device).open({{"hidden", partition}}, width, 1, never));
    for (const int draw : draws) {
      queue.take(draw);
      devices.array(device)->start(devices.array(device)->free_slot(), draw, nullptr, table);
    }
  }

  StudyConfig config;
  World world;
  FakeTrainer first{world, "fake:0"}, second{world, "fake:1"};
  TrialTable table;
  ReadyQueue queue{table};
  DeviceArrays devices{{&first, &second}};
  DeviceTimes times{timed_devices({&first, &second})};
  WidthLimits limits{kWidth, nullptr};
  Sharing sharing{devices, times, limits, table, queue};
  PartitionChoice choice{devices, limits, table, queue};
};

const std::vector<std::string> kSixAlike(6, "a");

}  // namespace

TEST_CASE("trials that fit into fewer slots than there are go to each device as its speed says") {
  TwoDevices two(random_config(6), kSixAlike);
  CHECK(two.sharing.parts_for("a") == 2);
  CHECK(two.sharing.share_of(0, "a", 0) == 3);
  CHECK(two.sharing.share_of(1, "a", 0) == 3);
  (void)two.times.add(0, "a", 1, {1, false, true});
  (void)two.times.add(1, "a", 1, {2, false, true});
  CHECK(two.sharing.share_of(0, "a", 0) == 4);
  CHECK(two.sharing.share_of(1, "a", 0) == 2);
  two.devices.retire(1);
  CHECK(!two.sharing.share_of(0, "a", 0));  // there is nobody to share with
  CHECK(two.sharing.parts_for("a") == 1);
}

TEST_CASE("nothing is divided while more trials are to be drawn, or where all slots are wanted") {
  TwoDevices more(random_config(7), kSixAlike);
  CHECK(!more.sharing.share_of(0, "a", 0));
  TwoDevices full(random_config(2 * kWidth), std::vector<std::string>(2 * kWidth, "a"));
  CHECK(!full.sharing.share_of(0, "a", 0));
  CHECK(full.sharing.takes_part(0, "a"));
}

TEST_CASE("a device that would only be waited for takes no part, unless nobody does anything") {
  TwoDevices two(random_config(6), kSixAlike);
  (void)two.times.add(0, "a", 1, {1, false, true});
  (void)two.times.add(1, "a", 1, {100, false, true});
  CHECK(!two.sharing.share_of(1, "a", 0));
  CHECK(two.sharing.takes_part(1, "a"));
  two.open(0, "a", 6, {0, 1, 2, 3, 4});
  CHECK(two.sharing.share_of(0, "a", 0) == 6);
  CHECK(two.sharing.share_of(1, "a", 0) == 0);
  CHECK(!two.sharing.takes_part(1, "a"));
}

TEST_CASE("a device has a surplus where dividing gains more than opening another array costs") {
  TwoDevices two(random_config(4), std::vector<std::string>(4, "a"));
  two.open(0, "a", 4, {0, 1, 2, 3});
  CHECK(two.sharing.epochs_to_do(*two.devices.array(0)) == 5);
  CHECK(two.sharing.surplus(0) == 2);
  two.times.opened(1, 11);  // 5 epochs of 2 units less
  CHECK(two.sharing.surplus(0) == 0);
  two.times.opened(1, 10);
  CHECK(two.sharing.surplus(0) == 2);
  two.devices.retire(1);
  CHECK(two.sharing.surplus(0) == 0);
}

TEST_CASE("a device turns to the partition with most work for it, and leaves an array for a clearly fuller one") {
  TwoDevices two(random_config(8), {"a", "a", "a", "b", "b", "b", "b", "b"});
  CHECK(two.choice.choose(0) == "b");
  two.open(1, "b", 4, {3});
  CHECK(two.choice.choose(0) == "a");  // which nobody trains
  two.open(0, "a", 4, {0, 1, 2});
  CHECK(!two.choice.worth_leaving(0));  // nobody will fill it, but nobody leaves it either
  two.table.rest(1, Phase::kPaused, nullptr);
  CHECK(!two.choice.worth_leaving(0));  // 4 are not clearly more than 3
  two.devices.array(0)->clear(1);
  two.devices.array(0)->clear(2);
  CHECK(two.choice.worth_leaving(0));
  CHECK(!two.choice.keeps_busy(0, 100));
  CHECK(!two.choice.is_for_another(0));  // draws follow from no results
}

TEST_CASE("a trial that was overtaken for long comes first") {
  StudyConfig config = random_config(100);
  config.budget.epochs = 1000;  // trials are drawn for empty slots
  std::vector<std::string> partitions(26, "a");
  partitions[0] = "rare";
  TwoDevices two(config, partitions);
  for (int draw = 0; draw < 26; ++draw) two.table.trial(draw).seen_rounds = 0;
  for (int draw = 3; draw < 26; ++draw) {
    two.queue.take(draw);
    two.table.finish(draw, trials::State::kComplete, "", std::nullopt);
  }
  two.choice.begin(1);
  CHECK(two.choice.choose(0) == "rare");  // 26 drawn since, three open
  two.open(0, "a", 4, {1, 2});
  CHECK(two.choice.comes_first(0) == 0);
  two.table.trial(24).seen_rounds = two.table.trial(25).seen_rounds = 1;
  CHECK(two.choice.comes_first(0) == std::nullopt);  // draws of the round do not count
}

TEST_CASE("trials are planned far ahead, or drawn for the slots that are empty") {
  StudyConfig config = random_config(2000);
  const bool for_slots = GENERATE(false, true);
  if (for_slots) config.budget.epochs = 100'000;
  TwoDevices two(config, {});
  std::vector<int> asked;
  SlotDraws draws(two.devices, two.limits, two.choice, two.table, two.queue, true, [&](int most, std::optional<int>) {
    asked.push_back(most);
    const int first = two.table.drawn();
    if (two.table.plan(most, 0) == 0) return false;
    for (int draw = first; draw < two.table.drawn(); ++draw) {
      two.table.assign(draw, "a");
      two.queue.push(draw);
    }
    return true;
  });
  draws.draw_for(0);
  if (!for_slots) {
    CHECK(asked == std::vector<int>{256, 256});  // 16 widths of 16 slots for each of two devices
    return;
  }
  CHECK(asked == std::vector<int>{1, kWidth - 1});
  two.table.enter({0, 1, 2, 3, 4, 5, 6, 7});
  two.world.partition_by = "";  // of the fake trainer: draws have other parameters
  two.open(0, "a", kWidth, {0, 1, 2, 3, 4, 5, 6, 7});
  draws.draw_for(0);
  CHECK(asked.size() == 2);  // it is full
  two.devices.array(0)->clear(5);
  draws.draw_for(0);
  CHECK(asked == std::vector<int>{1, kWidth - 1, 1});
}
