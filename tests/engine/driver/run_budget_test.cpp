// The time that a study has used, and what ends it.

#include "engine/driver/run_budget.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "hand_clock.hpp"
#include "study_fixture.hpp"

using namespace hfta;
using namespace hfta::engine;
using namespace hfta::engine::testing;

namespace {

// One trial, after so many epochs.
TrialTable trained(const StudyConfig& config, int epochs) {
  TrialTable table(config, {9});
  const int draw = table.add(0, {});
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    CHECK(table.report(draw, {0, epoch, {{"train_loss", 0.5}, {"val_accuracy", 0.5}}}).recorded);
  }
  return table;
}

}  // namespace

TEST_CASE("a budget of time counts all runs, and a run its own time") {
  StudyConfig config = random_config(9);
  config.budget.seconds = 100;
  const TrialTable table = trained(config, 0);
  HandClock clock;
  clock.now = 1000;
  RunBudget budget(config, clock, 70);
  clock.now = 1020;
  CHECK(budget.elapsed() == 20);
  CHECK(budget.spent() == 90);
  CHECK(!budget.out_of_time());
  budget.look(table, false);
  CHECK(!budget.ended());
  CHECK(budget.why().empty());
  clock.now = 1030;
  CHECK(budget.out_of_time());
  CHECK(!budget.ended());  // nobody has looked
  budget.look(table, true);
  CHECK(budget.ended());
  CHECK(budget.why() == "its budget of 100 seconds");
  clock.now = 0;
  budget.look(table, false);
  CHECK(budget.ended());  // and stays so
}

TEST_CASE("a budget of epochs waits until all trials have caught up") {
  StudyConfig config = random_config(9);
  config.budget.epochs = 3;
  const HandClock clock;
  RunBudget budget(config, clock, 0);
  budget.look(trained(config, 2), false);
  CHECK(!budget.ended());
  const TrialTable table = trained(config, 3);
  budget.look(table, true);
  CHECK(!budget.ended());
  budget.look(table, false);
  CHECK(budget.ended());
  CHECK(budget.why() == "its budget of 3 trial-epochs");
}

TEST_CASE("a study without a budget or target does not end early") {
  const StudyConfig config = random_config(9);
  HandClock clock;
  RunBudget budget(config, clock, 1e9);
  clock.now = 1e9;
  budget.look(trained(config, 5), false);
  CHECK(!budget.ended());
  CHECK(!budget.out_of_time());
}
