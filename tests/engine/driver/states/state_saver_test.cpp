// States that go to disk while a study runs, and trials that are trained up to the store: without a driver.

#include "engine/driver/states/state_saver.hpp"

#include <catch2/catch.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "base/memory_files.hpp"
#include "engine/driver/states/catching_up.hpp"
#include "engine/driver/study/study.hpp"
#include "engine/driver/trials/numbering.hpp"
#include "hand_clock.hpp"
#include "study_fixture.hpp"

using namespace hfta;
using namespace hfta::engine;
using namespace hfta::engine::testing;
using storage::StateKind;

namespace {

// Three trials that have trained an epoch; none is in a slot.
struct Saving {
  Saving() {
    store->create(new_record(study.config, {"/digits.yaml", {}}, {}, {}));
    for (int number = 0; number < 3; ++number) {
      table.assign(table.add(number, {}), "a");
      table.entry(number).recorded = table.entry(number).trained = 1;
    }
  }
  // The trial waits for a verdict with a state that is not on disk.
  void pause(int draw) {
    table.entry(draw).changed = true;
    table.rest(draw, Phase::kPaused, std::make_shared<const SlotState>(10));
  }
  // The trials whose states were added to the batch since the last call, in that order.
  std::vector<int> saved() {
    std::vector<int> numbers;
    for (const WriteBatch::File& file : std::exchange(batch, {}).states) numbers.push_back(file.number);
    return numbers;
  }

  StudyFixture study{random_config(9)};
  std::unique_ptr<storage::Store> store = study.open();
  Faults faults;
  MemoryFiles files{faults};
  storage::StudyStates states{files, "s.hfta/s"};
  HandClock clock;
  StudyWriter writer{{*store, states, study.recorder, clock, faults, study.stop}, study.config.study};
  TrialTable table{study.config, {9}};
  CheckpointManager checkpoints{states, study.config, [] {}};
  ReadyQueue queue{table};
  FakeTrainer trainer{study.world, "fake:0"};
  DeviceArrays devices{{&trainer}};
  WriteBatch batch;
  StateSaver saver{table, checkpoints, writer, devices.all(), clock, 15, batch};
};

}  // namespace

TEST_CASE("states for which memory does not suffice go to disk, those of the latest draws first") {
  Saving all;
  for (int draw = 0; draw < 3; ++draw) all.pause(draw);
  all.saver.spill();
  CHECK(all.saved() == std::vector<int>{2, 1});
  CHECK(all.table.held().bytes() == 10);
  CHECK(all.table.entry(0).state != nullptr);
  CHECK(all.table.entry(1).state == nullptr);
  all.saver.spill();
  CHECK(all.saved().empty());
}

TEST_CASE("a device's first states are saved at once, further ones when the interval is over") {
  Saving all;
  all.clock.now = 50;
  all.pause(0);
  all.saver.save_if_due(0);
  CHECK(all.saved() == std::vector<int>{0});
  CHECK(all.saver.interval() == 1);
  all.pause(1);
  all.clock.now = 50.5;
  all.saver.save_if_due(0);
  CHECK(all.saved().empty());
  all.clock.now = 51;
  all.saver.save_if_due(0);
  CHECK(all.saved() == std::vector<int>{1});
  all.saver.save({0});
  CHECK(all.saved().empty());  // none has changed
}

TEST_CASE("states in slots are saved with those that wait, behind them") {
  Saving all;
  all.devices.array(0) = std::make_unique<OpenArray>(0, "a", 2, all.trainer.open({}, 2, 1, never));
  all.devices.array(0)->start(1, 0, nullptr, all.table);
  all.table.entry(0).changed = true;
  all.pause(2);
  all.saver.save({});
  CHECK(all.saved() == std::vector<int>{2});
  all.pause(2);
  all.saver.save({0});
  CHECK(all.saved() == std::vector<int>{2, 0});
}

TEST_CASE("trials whose states are behind the store train up to it, alone, and are then as they were") {
  Saving all;
  for (int number = 0; number < 2; ++number) {
    all.table.entry(number).recorded = 2;
    all.states.of(StateKind::kRunning).save(number, number + 1, std::vector<std::byte>(10));
  }
  all.table.entry(2).recorded = 0;  // it has not begun
  all.table.rest(0, Phase::kPaused, nullptr);
  all.table.entry(0).decision = search::Decision::kPause;
  all.checkpoints.begin(all.table);
  CatchingUp catching_up(all.table, all.checkpoints, all.queue, all.saver);
  CHECK(!catching_up.active());
  REQUIRE(catching_up.begin());
  CHECK(catching_up.active());
  CHECK(!catching_up.done());
  REQUIRE(all.queue.ready() == 1);
  CHECK(all.queue.front("a") == 0);
  CHECK(all.table.entry(0).phase == Phase::kReady);
  CHECK(all.table.held().bytes() == 10);  // of two, one was more than memory suffices for
  OpenArray array(0, "a", 2, all.trainer.open({}, 2, 1, never));
  all.queue.take(0);
  array.start(0, 0, nullptr, all.table);
  array.start(1, 2, nullptr, all.table);
  CHECK(!catching_up.take_out(array, 1));
  CHECK(catching_up.take_out(array, 0));
  CHECK(array.draw_in(0) == 0);  // it is still behind
  all.table.entry(0).trained = 2;
  CHECK(catching_up.take_out(array, 0));
  CHECK(array.draw_in(0) == OpenArray::kEmpty);
  CHECK(all.table.entry(0).phase == Phase::kPaused);
  CHECK(all.table.entry(0).decision == search::Decision::kPause);
  CHECK(catching_up.done());
  catching_up.end();
  CHECK(!catching_up.active());
}

TEST_CASE("planned trials get their numbers in the order of their draws, as far as is asked for") {
  Saving all;
  StudyConfig config = random_config(9);
  TrialTable table(config, {9});
  Numbering numbering(table, all.writer, all.clock, all.study.stop, all.batch, [] { return false; });
  REQUIRE(table.plan(5, 0) == 5);
  CHECK(numbering.enter(1));
  CHECK(table.entered() == 2);
  CHECK(numbering.enter(0));
  CHECK(table.entered() == 2);
  CHECK(table.trial(1).number == table.trial(0).number + 1);
  CHECK(all.store->draws("digits").size() == 2);
  numbering.enter_ahead(2 / 60.);  // two trial-epochs in a minute: one trial begins, and has its number
  CHECK(table.entered() == 2);
  numbering.enter_ahead(11 / 60.);
  CHECK(table.entered() == 3);
  CHECK(numbering.enter_or_stop(4));
  CHECK(table.entered() == 5);
}

TEST_CASE("a store that was locked is not asked again for a second") {
  Saving all;
  Numbering numbering(all.table, all.writer, all.clock, all.study.stop, all.batch, [] { return true; });
  CHECK(!numbering.is_locked());
  numbering.asked(false);
  CHECK(numbering.is_locked());
  REQUIRE(all.table.plan(1, 0) == 1);
  CHECK(!numbering.enter(3));  // there is something to train meanwhile
  all.clock.now = 1;
  CHECK(!numbering.is_locked());
  CHECK(numbering.enter(3));
  numbering.asked(true);
  CHECK(!numbering.is_locked());
}
