// Which files are left of trials, in particular those that a killed run left.

#include "engine/driver/states/checkpoint_manager.hpp"

#include <catch2/catch.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/memory_files.hpp"
#include "engine/driver/study/study.hpp"
#include "engine/driver/trials/trial_table.hpp"
#include "engine/driver/writing/study_writer.hpp"
#include "study_fixture.hpp"

using namespace hfta;
using namespace hfta::engine;
using namespace hfta::engine::testing;
using storage::StateKind;

namespace {

struct States {
  Faults faults;
  MemoryFiles files{faults};
  storage::StudyStates all{files, "s.hfta/s"};
  storage::Checkpoints& running = all.of(StateKind::kRunning);
  storage::Checkpoints& finished = all.of(StateKind::kFinished);
  StudyConfig config = digits_config();
  TrialTable table{config, {98}};

  explicit States(bool select_best) {
    config.keep = 1;
    config.select_best = select_best;
    for (int number = 0; number < 2; ++number) table.assign(table.add(number, {}), "a");
  }
  CheckpointManager checkpoints() {
    return {all, config, [] {}};
  }
  void save_finished(int number) { finished.save(number, 9, std::vector<std::byte>(10)); }
};

// What the writer does with a batch.
void write(const WriteBatch& batch, States& states) {
  for (const WriteBatch::File& file : batch.kept) states.save_finished(file.number);
  for (const auto& [kind, number] : batch.needless) states.all.of(kind).remove(number);
}

}  // namespace

TEST_CASE(
    "weights that a killed run left of a trial that was not COMPLETE yet go, unless the trial is among the best") {
  const bool select_best = GENERATE(false, true), among_best = GENERATE(false, true);
  INFO((select_best ? "metric.select best, " : "") << (among_best ? "among the best" : "surpassed"));
  States states(select_best);
  states.save_finished(0);  // and then it was killed, in front of the transaction
  CheckpointManager checkpoints = states.checkpoints();
  checkpoints.begin(states.table);
  const bool minimize = states.config.objectives.front().goal == trials::Goal::kMinimize;
  WriteBatch batch;
  checkpoints.keep(1, 1, {0.5}, 9, std::make_shared<const SlotState>(10), batch);
  checkpoints.forget(1, batch);
  checkpoints.keep(0, 0, {among_best == minimize ? 0.1 : 0.9}, 9, std::make_shared<const SlotState>(10), batch);
  checkpoints.forget(0, batch);
  write(batch, states);
  CHECK(states.finished.trials() == std::vector<int>{among_best ? 0 : 1});
}

TEST_CASE("a trial goes on where its best weights on disk are newer than what the store knows") {
  States states(true);
  TrialRecord& entry = states.table.entry(0);
  entry.recorded = 4;
  entry.value_epoch = 3;
  states.running.save(0, 4, std::vector<std::byte>(10));
  for (const int epoch : {3, 5}) states.finished.save(0, epoch, std::vector<std::byte>(10));
  CheckpointManager checkpoints = states.checkpoints();
  checkpoints.begin(states.table);
  CHECK(checkpoints.restore(entry, 0) != nullptr);
  CHECK(entry.trained == 4);
  CHECK(entry.best_state != nullptr);
}

TEST_CASE("a trial whose newest state came to disk without its best weights goes on from the state before") {
  States states(true);
  TrialRecord& entry = states.table.entry(0);
  entry.recorded = entry.value_epoch = 9;
  for (const int epoch : {6, 9}) states.running.save(0, epoch, std::vector<std::byte>(10));
  states.finished.save(0, 5, std::vector<std::byte>(10));
  CheckpointManager checkpoints = states.checkpoints();
  checkpoints.begin(states.table);
  CHECK(checkpoints.restore(entry, 0) != nullptr);
  CHECK(entry.trained == 6);
  CHECK(entry.best_state == nullptr);  // it is met again
}

TEST_CASE("a trial neither of whose states has its best weights begins anew") {
  States states(true);
  TrialRecord& entry = states.table.entry(0);
  entry.recorded = 9;
  entry.value_epoch = 5;
  for (const int epoch : {6, 9}) states.running.save(0, epoch, std::vector<std::byte>(10));
  CheckpointManager checkpoints = states.checkpoints();
  checkpoints.begin(states.table);
  CHECK(checkpoints.restore(entry, 0) == nullptr);
  CHECK(entry.trained == 0);
}

TEST_CASE("a trial's best weights are on disk before the state that needs them") {
  StudyFixture study(random_config(2));
  const std::unique_ptr<storage::Store> store = study.open();
  store->create(new_record(study.config, {"/digits.yaml", {}}, {}, {}));
  const Faults faults("file-written@3=full");
  MemoryFiles files(faults);
  storage::StudyStates states(files, "s.hfta/s");
  const SystemClock clock;
  StudyWriter writer({*store, states, study.recorder, clock, faults, study.stop}, study.config.study);
  WriteBatch batch;
  for (const int number : {0, 1}) {
    for (const StateKind kind : {StateKind::kFinished, StateKind::kRunning}) {
      batch.states.push_back({kind, number, 9, std::make_shared<const SlotState>(10)});
    }
  }
  writer.add(std::move(batch));
  CHECK_THROWS(writer.flush());
  CHECK(states.of(StateKind::kFinished).trials() == std::vector<int>{0});
  CHECK(states.of(StateKind::kRunning).trials() == std::vector<int>{0});
}

TEST_CASE("the best weights of a trial that still runs stay, and go with it") {
  States states(true);
  states.save_finished(0);
  CheckpointManager checkpoints = states.checkpoints();
  checkpoints.begin(states.table);
  CHECK(states.finished.trials() == std::vector<int>{0});
  WriteBatch batch;
  checkpoints.forget(0, batch);  // it failed
  write(batch, states);
  CHECK(states.finished.trials().empty());
}
