// Threads of idle devices: to whom they are lent, and what becomes of studies.

#include "engine/driver/devices/lending.hpp"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <mutex>
#include <thread>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "study_fixture.hpp"

using namespace hfta;
using namespace hfta::engine;
using namespace hfta::engine::testing;

namespace {

LendingDevice idle(int threads, std::vector<int> cpus = {}) { return {threads, std::move(cpus), true}; }
LendingDevice busy(int threads, double seconds, int lent = 0, double cost = 0) {
  return {threads, {}, false, seconds, cost, lent};
}
LendingDevice busy_on(std::vector<int> cpus, double seconds) { return {1, std::move(cpus), false, seconds}; }

}  // namespace

TEST_CASE("threads of idle devices go where the work ends last") {
  struct Case {
    const char* what;
    std::vector<LendingDevice> devices;
    std::vector<int> lent;
  };
  const std::vector<Case> cases = {
      {"nobody is idle", {busy(1, 10), busy(1, 5)}, {0, 0}},
      {"all are", {idle(2), idle(2)}, {0, 0}},
      {"one of two", {busy(1, 10), idle(1)}, {1, 0}},
      {"all of its threads", {idle(3), busy(2, 10)}, {0, 3}},
      {"the last to end", {busy(1, 5), idle(1), busy(1, 10)}, {0, 0, 1}},
      {"a tie goes to the first", {busy(1, 10), idle(1), busy(1, 10)}, {1, 0, 0}},
      {"each to one of them", {busy(1, 10), busy(1, 10), idle(1), idle(1)}, {1, 1, 0, 0}},
      {"until ends meet", {busy(1, 30), busy(1, 10), idle(3)}, {3, 0, 0}},
      {"and further", {busy(1, 30), busy(1, 12), idle(3)}, {2, 1, 0}},
      {"by the threads that they have", {busy(4, 10), busy(1, 7), idle(2)}, {2, 0, 0}},
      {"a GPU beside them lends none and borrows none", {idle(0), busy(0, 100), busy(1, 10), idle(1)}, {0, 0, 1, 0}},
      {"an array that cannot, or has no work", {busy(1, 0), idle(1)}, {0, 0}},
      {"what costs more than it brings", {busy(1, 10, 0, 2), idle(1)}, {0, 0}},
      {"what brings clearly more than it costs", {busy(1, 10, 0, 1), idle(1)}, {1, 0}},
      {"those who have some keep them", {busy(1, 5, 1), busy(1, 10), idle(1)}, {1, 0, 0}},
      {"be it for little more", {busy(1, 0.1, 1, 2), idle(1)}, {1, 0}},
      {"those who have some, and more came", {busy(1, 5, 1), busy(1, 10), idle(2)}, {1, 1, 0}},
      {"fewer are idle than were", {busy(1, 5, 2), busy(1, 10, 2), idle(3)}, {2, 1, 0}},
      {"they are taken back", {busy(1, 5, 1), busy(1, 10)}, {0, 0}},
      {"given back where they do not help", {busy(1, 0, 1), idle(1)}, {0, 0}},
      {"of one node", {busy_on({0, 1}, 10), busy_on({2, 3}, 5), idle(2, {2, 3}), idle(1)}, {0, 2, 0, 0}},
  };
  for (const Case& c : cases) {
    INFO(c.what);
    CHECK(lent_threads(c.devices) == c.lent);
  }
}

TEST_CASE("lent threads that make no epoch faster are not borrowed again") {
  struct Case {
    std::vector<double> seconds;  // of epochs with lent threads, where they take 1 alone
    bool help;
  };
  for (const Case& c : {Case{{}, true}, Case{{1.5}, true}, Case{{1.5, 0.6}, true}, Case{{1.0, 0.97}, false},
                        Case{{1.2, 1.1, 0.9}, true}}) {
    LentEpochs epochs;
    for (const double seconds : c.seconds) epochs.add(1, "a", seconds, 1);
    CHECK(epochs.help(1, "a") == c.help);
    CHECK(epochs.help(0, "a"));
    CHECK(epochs.help(1, "b"));
  }
}

namespace {

StudyConfig few_trials(int trials) {
  StudyConfig config = random_config(trials);
  config.width = 1;
  config.space.pop_back();  // hidden, which splits them into partitions
  config.shape_changing = {};
  config.task = [](const trials::Params&) {
    TaskSpec task;
    task.recipe.epochs = 40;
    return task;
  };
  return config;
}

std::string table_of_one_device(const StudyConfig& config) {
  StudyFixture study(config);
  (void)study.run(1);
  return study.table();
}

bool notes_of_lending(const StudyFixture& study) {
  return std::any_of(study.recorder.notes.begin(), study.recorder.notes.end(), [](const std::string& note) {
    return note == "fake:0 trains with a thread of idle devices as well";
  });
}

using Borrowed = std::vector<std::pair<std::string, int>>;

/// Shows what epochs take, and nothing else: loaded machines make no difference.
class EpochClock final : public Clock {
 public:
  void pass(int seconds) { seconds_ += seconds; }
  [[nodiscard]] Utc utc() const override { return Utc(std::chrono::seconds(1700000000 + seconds_)); }
  [[nodiscard]] double seconds() const override { return seconds_; }

 private:
  std::atomic<int> seconds_ = 0;
};

/// An epoch takes 5 s, and 1 s with lent threads if these help.
void take_time(StudyFixture& study, EpochClock& clock, bool help) {
  study.clock = &clock;
  study.world.before_epoch = [&world = study.world, &clock, help](const std::string&) {
    const std::lock_guard guard(world.mutex);
    const bool faster = help && !world.borrowed.empty() && world.borrowed.back().second > 0;
    clock.pass(faster ? 1 : 5);
  };
}

}  // namespace

TEST_CASE("a trial that is left alone gets the threads of the idle device, and nothing else changes") {
  struct Case {
    bool lend, help;
    Borrowed borrowed;
  };
  for (const Case& c :
       {Case{true, true, {{"fake:0", 1}}}, Case{true, false, {{"fake:0", 1}, {"fake:0", 0}}}, Case{false, true, {}}}) {
    CAPTURE(c.lend, c.help);
    StudyFixture study(few_trials(1));
    study.config.lend = c.lend;
    study.world.threads = 1;
    EpochClock clock;
    take_time(study, clock, c.help);
    (void)study.run(2);
    CHECK((study.world.borrowed == c.borrowed));
    CHECK(notes_of_lending(study) == c.lend);
    CHECK(study.table() == table_of_one_device(few_trials(1)));
  }
}

TEST_CASE("a device without threads, as a GPU, lends none") {
  StudyFixture study(few_trials(1));
  EpochClock clock;
  take_time(study, clock, true);
  (void)study.run(2);
  CHECK(study.world.borrowed.empty());
}

namespace {

/// Three devices for two trials. The third lends its thread to the first. In the epoch that the first one trains with
/// it the second fails, so that the third has a trial of its own to train.
class Calls {
 public:
  explicit Calls(StudyFixture& study) : world_(study.world) {
    study.clock = &clock_;
    world_.threads = 1;
    world_.steps = 3;
    world_.before_epoch = [this](const std::string& device) { before_epoch(device); };
  }

 private:
  void before_epoch(const std::string& device) {
    if (device == "fake:0") clock_.pass(5);
    if (device == "fake:1") {
      wait_until([this] { return !world_.borrowed.empty(); });
      throw Error(ErrorKind::kDevice, "fake:1: gone");
    }
    if (device == "fake:2") third_begins_ = true;
    wait_until([&] { return device != "fake:0" || world_.borrowed.empty() || third_begins_; });
  }

  void wait_until(const std::function<bool()>& what) {
    for (int tries = 0; tries < 20000; ++tries) {
      {
        const std::lock_guard guard(world_.mutex);
        if (what()) return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  World& world_;
  EpochClock clock_;
  std::atomic<bool> third_begins_ = false;
};

}  // namespace

TEST_CASE("threads are given back within an epoch when their own device has work again") {
  const StudyConfig config = few_trials(2);
  StudyFixture study(config);
  const Calls calls(study);
  (void)study.run(3);
  REQUIRE(study.world.borrowed.size() >= 2);
  CHECK(study.world.borrowed[0] == std::pair<std::string, int>("fake:0", 1));
  CHECK(study.world.borrowed[1] == std::pair<std::string, int>("fake:0", 0));
  CHECK(study.world.pauses >= 1);
  CHECK(study.table() == table_of_one_device(config));
}

TEST_CASE("studies that are killed and that lend come to the same") {
  StudyConfig config = digits_config();
  config.width = 4;
  StudyFixture study(config);
  study.world.threads = 2;
  study.world.steps = 2;
  (void)study.run_in_pieces(7, 3, true);
  CHECK(study.table() == reference_table());
}
