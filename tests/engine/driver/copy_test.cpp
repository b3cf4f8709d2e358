// Trials that go on from a copy of another: undisturbed and stopped, with states and without, by whom a lost one is
// trained again.

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "base/memory_files.hpp"
#include "engine/driver/states/checkpoint_manager.hpp"
#include "engine/driver/trials/lineage.hpp"
#include "study_fixture.hpp"

using namespace hfta;
using namespace hfta::engine;
using namespace hfta::engine::testing;
using storage::StateKind;
using trials::State;
using trials::Trial;

namespace {

StudyConfig population_config(int run_cap = 20) {
  StudyConfig config = random_config(run_cap);
  config.method = "pbt";
  config.method_options.pbt = {.population = 10, .interval = 2, .max_epochs = 9, .truncation = 40, .resample = 30};
  return config;
}

long copies_of(StudyFixture& study) {
  long count = 0;
  for (const Trial& trial : study.trials()) count += static_cast<long>(trial.copies.size());
  return count;
}

trials::Trial trial_of(int number, std::vector<trials::Copy> copies) {
  Trial trial;
  trial.number = number;
  trial.params = {{"x", std::int64_t{number}}};
  trial.copies = std::move(copies);
  return trial;
}

}  // namespace

TEST_CASE("a state is trained again as the trials were that it is made of") {
  // 0 is nobody's copy. 1 went on from 0 after 4. 2 went on from 1 after 4 and from 1 again after 6. 3 went on from 2
  // after 6, at the same verdict.
  const trials::Params own = {{"x", std::int64_t{100}}};
  const std::vector<Trial> all = {trial_of(10, {}), trial_of(11, {{4, 10, own}}),
                                  trial_of(12, {{4, 11, own}, {6, 11, own}}), trial_of(13, {{6, 12, own}})};
  struct Case {
    int draw;
    std::vector<int> numbers;  // after 0, 1, ... epochs
  };
  const Case cases[] = {{0, {10, 10, 10, 10, 10, 10, 10, 10}},
                        {1, {10, 10, 10, 10, 11, 11, 11, 11}},
                        {2, {10, 10, 10, 10, 11, 11, 12, 12}},   // its first copy is given up by the second
                        {3, {11, 11, 11, 11, 12, 12, 13, 13}}};  // 12 as it was before it went on from 11 after 6
  for (const Case& c : cases) {
    for (int trained = 0; trained < 8; ++trained) {
      INFO("draw " << c.draw << " after " << trained);
      const Identity whom = identity_of(all, c.draw, trained);
      CHECK(whom.number == c.numbers[static_cast<std::size_t>(trained)]);
      const bool copied = whom.number != 10 && !(c.draw == 3 && trained < 4) && !(c.draw == 2 && trained < 4);
      CHECK((*whom.params == own) == copied);
    }
  }
  CHECK_THROWS_AS(identity_of({trial_of(1, {{2, 99, own}})}, 0, 0), Error);
}

TEST_CASE("a population comes to the same at any width, on any number of devices, however often it is stopped") {
  struct Case {
    int width, devices, rounds;
    bool keep_states, select_best;
  };
  const Case c = GENERATE(Case{10, 1, 0, true, false}, Case{3, 1, 0, true, false}, Case{32, 3, 0, true, true},
                          Case{4, 2, 1, true, false}, Case{7, 1, 3, true, true}, Case{16, 2, 7, true, false},
                          Case{4, 1, 90, false, false}, Case{8, 2, 60, false, true});
  INFO("width " << c.width << ", " << c.devices << " devices, " << c.rounds << " rounds a run");
  // Where all states are lost, a run is long enough to get further than it has to catch up.
  const int trials = c.keep_states ? 20 : 60;
  StudyConfig config = population_config(trials);
  config.select_best = c.select_best;
  config.width = 1;
  StudyFixture undisturbed(config);
  CHECK(undisturbed.run().stopped_by == 0);
  config.width = c.width;
  StudyFixture study(config, c.rounds == 3 ? Kept::kInFile : Kept::kInMemory);
  if (c.rounds == 0) {
    CHECK(study.run(c.devices).stopped_by == 0);
  } else {
    CHECK(study.run_in_pieces(c.rounds, c.devices, c.keep_states) > 1);
  }
  CHECK(study.table() == undisturbed.table());
  CHECK(copies_of(study) > 20);
  CHECK(study.world.copies > 0);
  CHECK(study.count(State::kComplete) == trials);
}

TEST_CASE("trials without room in memory go on from copies on disk") {
  StudyFixture undisturbed(population_config()), study(population_config());
  CHECK(undisturbed.run().stopped_by == 0);
  study.config.width = 2;
  study.state_memory = 1;
  CHECK(study.run().stopped_by == 0);
  CHECK(study.table() == undisturbed.table());
}

TEST_CASE("a population comes to the same when a device fails while trials are moved") {
  StudyFixture undisturbed(population_config()), study(population_config());
  CHECK(undisturbed.run().stopped_by == 0);
  const std::string call = GENERATE("insert", "extract", "clear");
  const int at = GENERATE(1, 2, 9, 30);
  CAPTURE(call, at);
  study.config.width = 4;
  int calls = 0;
  study.fail_at(call, at, calls);
  CHECK(study.run(2).stopped_by == 0);
  CHECK(study.table() == undisturbed.table());
}

TEST_CASE("copies whose states are lost are trained again, to the same end") {
  StudyFixture undisturbed(population_config()), study(population_config());
  CHECK(undisturbed.run().stopped_by == 0);
  const char* lost = GENERATE("copied", "running", "both");
  study.config.width = 4;
  int runs = 0;
  do {
    REQUIRE(++runs < 200);
    study.stop = 0;
    const int before = study.world.runs;
    study.world.after_epochs = [&, before](int done) {
      if (done - before >= 11) study.stop = SIGINT;
    };
    for (const std::string kind : {"copied", "running"}) {
      if (lost == kind || std::string(lost) == "both") std::filesystem::remove_all(study.checkpoints / kind);
    }
  } while (study.run().stopped_by != 0);
  CHECK(runs > 3);
  CHECK(study.table() == undisturbed.table());
}

TEST_CASE("what is told of copies is what the store has") {
  StudyFixture study(population_config());
  CHECK(study.run(2).stopped_by == 0);
  std::map<std::pair<int, int>, TrialCopied> told;
  for (const Event& event : study.recorder.events) {
    if (const auto* copied = std::get_if<TrialCopied>(&event)) {
      CHECK(told.emplace(std::pair(copied->trial, copied->epoch), *copied).second);
    }
  }
  for (const Trial& trial : study.trials()) {
    for (const trials::Copy& copy : trial.copies) {
      const auto found = told.find({trial.number, copy.epoch});
      REQUIRE(found != told.end());
      CHECK(found->second.source == copy.source);
      CHECK((found->second.params == copy.params));
      told.erase(found);
    }
  }
  CHECK(told.empty());
}

TEST_CASE("a trial that diverged in the round in which a copy could not be written has failed, with its reason") {
  const auto diverge = [](StudyFixture& study) {
    study.world.diverge = {4, 7, 8, 9};
    study.world.diverge_at = 4;
    study.config.width = 4;
    study.state_memory = 1;  // a source's state is on disk, and what it waits for is written first
  };
  StudyFixture undisturbed(population_config());
  diverge(undisturbed);
  CHECK(undisturbed.run().stopped_by == 0);
  CHECK(undisturbed.count(State::kFail) == 4);
  for (int copy = 1; copy <= 12; ++copy) {
    CAPTURE(copy);
    StudyFixture study(population_config());
    diverge(study);
    study.faults = fmt::format("copy-saved@{}=full", copy);
    CHECK_THROWS_AS(study.run(), Error);
    study.faults.clear();
    CHECK(study.run().stopped_by == 0);
    CHECK(study.table() == undisturbed.table());
  }
}

TEST_CASE("a trial's value counts from its last copy") {
  StudyConfig config = population_config();
  config.select_best = true;
  StudyFixture study(config);
  CHECK(study.run().stopped_by == 0);
  for (const Trial& trial : study.trials()) {
    const int since = trial.copies.empty() ? 0 : trial.copies.back().epoch;
    double best = 0;
    for (const trials::EpochRecord& epoch : trial.epochs) {
      if (epoch.epoch > since) best = std::max(best, epoch.metrics.at(config.objectives.front().metric));
    }
    CHECK(trial.value() == best);
  }
}

TEST_CASE("another program ends the trial that a population waits for: who is to go on from a copy does") {
  StudyFixture study(population_config(10), Kept::kInFile);
  study.config.width = 1;  // one after the other: the last comes to its judgement alone
  study.world.after_epochs = [&](int done) {
    if (done == 19) study.stop = SIGINT;
  };
  CHECK(study.run().stopped_by == SIGINT);
  study.stop = 0;
  study.world.after_epochs = nullptr;
  const std::vector<Trial> before = study.trials();
  const auto last = std::find_if(before.begin(), before.end(), [](const Trial& t) { return t.epochs.size() < 2; });
  REQUIRE(last != before.end());
  CHECK(copies_of(study) == 0);
  {
    storage::Changes changes;
    changes.states = {{last->number, State::kFail, {}, "somebody did it", {}}};
    study.open()->commit(study.config.study, changes);
  }
  CHECK(study.run().stopped_by == 0);
  CHECK(study.count(State::kComplete) == 9);
  CHECK(copies_of(study) > 4);
}

namespace {

// The files of one trial of a study without a run.
struct Folders {
  Faults faults;
  MemoryFiles files{faults};
  storage::StudyStates states{files, "s.hfta/s"};
  StudyConfig config = population_config();
  TrialTable table{config, {20}};
  CheckpointManager checkpoints{states, config, [] {}};

  Folders() {
    table.assign(table.add(0, {}), "a");
    table.entry(0).recorded = 4;
    table.entry(0).copied = 4;
  }
  void save(StateKind kind, int epoch, int byte) {
    states.of(kind).save(0, epoch, std::vector<std::byte>(byte == 0 ? 0 : 8, static_cast<std::byte>(byte)));
  }
  // 0: it has to be made again.
  int restored() {
    CheckpointManager anew(states, config, [] {});
    anew.begin(table);
    const HeldState state = anew.restore(table.entry(0), 0);
    CHECK((state != nullptr) == (table.entry(0).trained > 0));
    return state ? static_cast<int>(state->front()) : 0;
  }
};

}  // namespace

TEST_CASE("where a run was killed beside a copy, its trial goes on from that, or from nothing") {
  Folders all;
  SECTION("behind the transaction: what the trial was is still there") {
    all.save(StateKind::kRunning, 4, 1);
    all.save(StateKind::kCopied, 4, 2);
    CHECK(all.restored() == 2);
    CHECK(all.states.of(StateKind::kRunning).trials().empty());
  }
  SECTION("in front of the transaction of a second copy") {
    all.save(StateKind::kRunning, 6, 3);
    all.save(StateKind::kCopied, 6, 4);
    all.table.entry(0).recorded = 6;
    CHECK(all.restored() == 3);
    CHECK(all.states.of(StateKind::kCopied).trials().empty());
  }
  SECTION("the copy has trained on") {
    all.save(StateKind::kRunning, 5, 5);
    all.table.entry(0).recorded = 5;
    CHECK(all.restored() == 5);
  }
  SECTION("a state of before the copy alone") {
    all.save(StateKind::kRunning, 3, 6);
    CHECK(all.restored() == 0);
  }
  SECTION("a copy that was to be made again") {
    all.save(StateKind::kRunning, 4, 7);
    all.save(StateKind::kCopied, 4, 0);
    CHECK(all.restored() == 0);
  }
}

TEST_CASE("a state behind a copy takes its place") {
  Folders all;
  WriteBatch batch;
  batch.states.push_back({StateKind::kRunning, 0, 4, nullptr});
  all.checkpoints.copy(all.table.entry(0), 0, std::make_shared<const SlotState>(3), batch);
  CHECK(batch.states.empty());
  REQUIRE(batch.kept.size() == 1);
  CHECK(batch.kept[0].epoch == 4);
  CHECK(batch.outdated == std::vector{std::pair(0, 4)});
  WriteBatch next;
  TrialRecord& entry = all.table.entry(0);
  entry.trained = entry.recorded = 5;
  entry.changed = true;
  all.checkpoints.save(entry, 0, std::make_shared<const SlotState>(3), next);
  CHECK(next.needless == std::vector{std::pair(StateKind::kCopied, 0)});
}
