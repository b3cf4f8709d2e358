// States that wait in memory: what the driver asks about them in every round must not grow with their number.

#include "engine/driver/trials/trial_table.hpp"

#include <catch2/catch.hpp>
#include <ctime>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "study_fixture.hpp"

using namespace hfta;
using namespace hfta::engine;
using namespace hfta::engine::testing;

namespace {

HeldState state_of(std::size_t bytes) { return std::make_shared<const SlotState>(bytes); }

// So many trials, none of which has begun.
TrialTable ledger_with(const StudyConfig& config, int trials) {
  TrialTable table(config, {98});
  for (int number = 0; number < trials; ++number) table.assign(table.add(number, {}), "a");
  return table;
}

void train(TrialTable& table, int draw) {
  table.seat(draw);
  table.entry(draw).changed = true;
}

}  // namespace

TEST_CASE("a state that waits is told of once to be saved, and again when it has changed") {
  const StudyConfig config = digits_config();
  TrialTable table = ledger_with(config, 3);
  for (int draw = 0; draw < 3; ++draw) {
    train(table, draw);
    table.rest(draw, Phase::kPaused, state_of(10));
  }
  CHECK(table.take_unsaved() == std::set<int>{0, 1, 2});
  for (int draw = 0; draw < 3; ++draw) table.entry(draw).changed = false;
  CHECK(table.take_unsaved().empty());
  table.rest(0, Phase::kReady, table.entry(0).state);  // promoted, and not trained since
  CHECK(table.take_unsaved().empty());
  train(table, 1);
  table.rest(1, Phase::kPaused, state_of(10));
  train(table, 2);  // in a slot: the array has its state
  CHECK(table.take_unsaved() == std::set<int>{1});
}

TEST_CASE("trials that go on, end or wait on disk hold nothing in memory") {
  const StudyConfig config = digits_config();
  TrialTable table = ledger_with(config, 4);
  for (int draw = 0; draw < 4; ++draw) {
    train(table, draw);
    if (draw == 3) table.entry(draw).best_state = state_of(1000);
    table.rest(draw, Phase::kPaused, state_of(10));
  }
  CHECK(table.held().bytes() == 1040);
  CHECK(table.held().by_draw() == std::map<int, std::size_t>{{0, 10}, {1, 10}, {2, 10}, {3, 1010}});
  table.rest(0, Phase::kReady, table.entry(0).state);
  CHECK(table.held().bytes() == 1040);
  table.seat(0);
  table.release(1);
  table.finish(3, trials::State::kPruned, "", std::nullopt);
  CHECK(table.held().bytes() == 10);
  CHECK(table.held().by_draw() == std::map<int, std::size_t>{{2, 10}});
  CHECK(table.take_unsaved() == std::set<int>{2});
}

TEST_CASE("of a trial's metrics only those of the objectives stay in memory") {
  const StudyConfig config = digits_config();
  TrialTable table = ledger_with(config, 1);
  std::map<std::string, double> metrics = {{"train_loss", 0.5}, {"val_accuracy", 0.75}};
  for (int cell = 0; cell < 100; ++cell) metrics["val_confusion_" + std::to_string(cell)] = cell;
  const ReportResult told = table.report(0, {0, 1, metrics});
  CHECK(told.recorded);
  CHECK(told.value == 0.75);
  REQUIRE(table.trial(0).epochs.size() == 1);
  CHECK(table.trial(0).epochs.front().metrics == std::map<std::string, double>{{"val_accuracy", 0.75}});
  StudyFixture study(random_config(2));
  (void)study.run();
  TrialTable restored(study.config, {2});
  (void)restored.restore(*study.open());
  for (const trials::Trial& trial : restored.trials()) {
    REQUIRE(trial.epochs.size() == 5);
    for (const trials::EpochRecord& record : trial.epochs) CHECK(record.metrics.size() == 1);
  }
}

TEST_CASE("draws that follow from no results cost the same however many there were, also with a budget") {
  StudyConfig config = random_config(100'000);
  config.repetitions = {2, 1, trials::Rank::kMean};
  for (trials::Parameter& axis : config.repetitions.axes()) config.space.push_back(std::move(axis));
  config.budget.epochs = 1'000'000;
  TrialTable table(config, {100'000});
  const std::clock_t start = std::clock();
  while (table.drawn() < 16'000) (void)table.plan(1, 0);
  CHECK(std::clock() - start < 2 * CLOCKS_PER_SEC);
}
