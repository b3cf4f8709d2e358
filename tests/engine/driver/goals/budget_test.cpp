// Studies that end at a budget or a target, and go on with more.

#include "engine/driver/goals/budget.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <map>
#include <memory>

#include "base/error.hpp"
#include "engine/driver/study/study.hpp"
#include "study_fixture.hpp"

using namespace hfta;
using namespace hfta::engine;
using namespace hfta::engine::testing;
using trials::State;
using trials::Trial;

namespace {

/// Stands still but for what a test adds.
class StandingClock final : public Clock {
 public:
  [[nodiscard]] Utc utc() const override {
    return Utc(std::chrono::seconds(1'700'000'000) + std::chrono::seconds(static_cast<long>(passed)));
  }
  [[nodiscard]] double seconds() const override { return passed; }
  std::atomic<double> passed{0};
};

/// Of two slots, with 100 seconds by that clock.
void limit_time(StudyFixture& study, StandingClock& clock) {
  study.clock = &clock;
  study.config.width = 2;
  study.config.budget.seconds = 100;
}

std::string epochs_of(const std::vector<Trial>& all) {
  std::string text;
  for (const Trial& trial : all) {
    text += std::to_string(trial.number) + " " + trials::name_of(trial.state);
    for (const trials::EpochRecord& record : trial.epochs)
      text += " " + std::to_string(record.metrics.at("val_accuracy"));
    text += "\n";
  }
  return text;
}

storage::StudyRecord record_of(StudyFixture& study) { return *study.open()->find(study.config.study); }

bool finished(StudyFixture& study) {
  const std::unique_ptr<storage::Store> store = study.open();
  return is_finished(*store, study.config, *store->find(study.config.study));
}

}  // namespace

TEST_CASE("what ends a study, and why") {
  StudyConfig config = random_config(9);
  CHECK_FALSE(ends_early(config));
  CHECK(end_of(config, {1e9, 1'000'000, 1.0}).empty());
  config.budget.epochs = 100;
  CHECK(ends_early(config));
  CHECK(end_of(config, {0, 99, {}}).empty());
  CHECK(end_of(config, {0, 100, {}}) == "its budget of 100 trial-epochs");
  config.budget.seconds = 5400;
  CHECK(end_of(config, {5400, 0, {}}) == "its budget of 1.5 hours");
  config.budget.seconds = 0.6;
  CHECK(end_of(config, {5400, 0, {}}) == "its budget of 0.6 seconds");
  config.budget.seconds = 1500;
  CHECK(end_of(config, {5400, 0, {}}) == "its budget of 25 minutes");
  config.target = 0.9;  // to be maximized
  CHECK(end_of(config, {0, 0, 0.89}).empty());
  CHECK(end_of(config, {0, 0, 0.9}) == "its target: val_accuracy 0.9 is reached");
  config.objectives.front().goal = trials::Goal::kMinimize;
  CHECK(end_of(config, {0, 0, 0.89}) == "its target: val_accuracy 0.9 is reached");
  CHECK(end_of(config, {0, 0, {}}).empty());
}

TEST_CASE("a budget of epochs is kept to the epoch, and a larger one goes on") {
  const int devices = GENERATE(1, 3);
  const char* stopping = GENERATE("none", "asha");
  CAPTURE(devices, stopping);
  StudyFixture study(random_config(20)), whole(random_config(20));
  for (StudyFixture* one : {&study, &whole}) {
    one->config.width = 4;
    if (stopping != std::string("none")) one->config.early_stopping = {{stopping}};
  }
  (void)whole.run();
  const long all = total_epochs(whole.trials());
  for (const long budget : {1L, 7L, 33L, 34L, all - 1}) {
    study.config.budget.epochs = budget;
    const Outcome outcome = study.run(devices);
    CHECK(outcome.stopped_by == 0);
    CHECK(outcome.ended_by == "its budget of " + std::to_string(budget) + " trial-epochs");
    CHECK(total_epochs(study.trials()) == budget);
    CHECK(study.count(State::kFail) == 0);
    CHECK(study.count(State::kRunning) > 0);
    CHECK(record_of(study).progress.ended_by == outcome.ended_by);
    CHECK(finished(study));
    CHECK(study.run(devices).rounds == 0);  // nothing is left of it
  }
  study.config.budget.epochs.reset();
  CHECK_FALSE(finished(study));
  const Outcome outcome = study.run(devices);
  CHECK(outcome.ended_by.empty());
  CHECK(record_of(study).progress.ended_by.empty());
  CHECK(epochs_of(study.trials()) == epochs_of(whole.trials()));
}

TEST_CASE("a budget of time counts every run, also one that was stopped") {
  StudyFixture study(random_config(40));
  StandingClock clock;
  limit_time(study, clock);
  study.world.after_epochs = [&](int runs) {
    clock.passed = clock.passed + 10;
    if (runs == 4) study.stop = SIGINT;
  };
  CHECK(study.run().stopped_by == SIGINT);
  CHECK(record_of(study).progress.seconds == Approx(40));
  study.stop = 0;
  clock.passed = 1e6;  // what passes between runs counts for nothing
  const Outcome outcome = study.run();
  CHECK(outcome.stopped_by == 0);
  CHECK(outcome.ended_by == "its budget of 100 seconds");
  CHECK(record_of(study).progress.seconds == Approx(100));
  CHECK(study.world.runs == 10);
  CHECK(study.count(State::kFail) == 0);
  CHECK(finished(study));
  const std::vector<Trial> before = study.trials();
  study.config.budget.seconds = 150;
  CHECK_FALSE(finished(study));
  (void)study.run();
  CHECK(study.world.runs == 15);
  for (const Trial& trial : before) {  // each went on from its state: no epoch is trained twice
    CHECK(study.trials().at(static_cast<std::size_t>(trial.number)).epochs.size() >= trial.epochs.size());
  }
  CHECK(total_epochs(study.trials()) == study.world.trial_epochs);
}

TEST_CASE("a budget of time counts what a run that is stopped spent since its last round") {
  StudyFixture study(random_config(40));
  StandingClock clock;
  limit_time(study, clock);
  study.world.steps = 2;
  study.world.before_epoch = [&](const std::string&) {
    clock.passed = clock.passed + 30;
    study.stop = SIGINT;
  };
  for (const double spent : {30, 60, 90}) {
    study.stop = 0;
    CHECK(study.run().stopped_by == SIGINT);
    CHECK(record_of(study).progress.seconds == Approx(spent));
    CHECK(record_of(study).progress.ended_by.empty());
  }
}

TEST_CASE("a budget of time that runs out while trials catch up ends the study") {
  StudyConfig config = random_config(20);
  config.method = "tpe";
  config.width = 2;
  StudyFixture whole(config), study(config);
  (void)whole.run();
  StandingClock clock;
  limit_time(study, clock);
  study.world.steps = 2;
  int starts = 0;
  study.world.before_epoch = [&](const std::string&) {
    clock.passed = clock.passed + 10;
    if (++starts > 100) throw Error(ErrorKind::kInternal, "the study does not come to an end");
  };
  study.world.after_epochs = [&](int runs) {
    if (runs == 9) study.stop = SIGINT;
  };
  CHECK(study.run().stopped_by == SIGINT);
  study.stop = 0;
  std::filesystem::remove_all(study.checkpoints / "running");  // as of a run that was killed before it wrote any
  const Outcome outcome = study.run();
  CHECK(outcome.ended_by == "its budget of 100 seconds");
  CHECK(outcome.rounds == 0);
  CHECK(starts == 10);
  CHECK(finished(study));
  study.config.budget.seconds.reset();  // what was not caught up with then is now
  starts = -1000;
  CHECK(study.run().ended_by.empty());
  CHECK(epochs_of(study.trials()) == epochs_of(whole.trials()));
}

TEST_CASE("a target ends the study with the trial that reached it") {
  StudyFixture whole(random_config(20));
  whole.config.width = 4;
  (void)whole.run();
  double best = 0;
  for (const Trial& trial : whole.trials()) best = std::max(best, trial.epochs.at(2).metrics.at("val_accuracy"));
  StudyFixture study(random_config(20));
  study.config.width = 4;
  study.config.target = best;
  const Outcome outcome = study.run();
  CHECK(outcome.any_complete);
  CHECK(outcome.ended_by.find("its target") == 0);
  const std::vector<Trial> all = study.trials();
  const Trial* reached = trials::best_of(all, trials::Goal::kMaximize);
  REQUIRE(reached != nullptr);
  CHECK(*reached->value() >= best);
  CHECK_FALSE(reached->test_metrics.empty());
  CHECK(finished(study));
  CHECK(total_epochs(all) < total_epochs(whole.trials()));
}

TEST_CASE("with repetitions a whole configuration has to reach the target") {
  StudyConfig config = random_config(12);
  config.repetitions = {3, 1, GENERATE(trials::Rank::kMean, trials::Rank::kMedian, trials::Rank::kLower)};
  for (trials::Parameter& axis : config.repetitions.axes()) config.space.push_back(std::move(axis));
  config.width = 4;
  StudyFixture whole(config), missed(config), reached(config);
  (void)whole.run();
  const std::vector<Trial> all = whole.trials();
  const auto value_in = [&](StudyFixture& study) {
    const std::vector<Trial> trials = study.trials();
    return trials::best_value(trials::in_order(trials, study.open()->draws(config.study)), config.repetitions,
                              trials::Goal::kMaximize)
        .value();
  };
  const double best = value_in(whole), best_trial = *trials::best_of(all, trials::Goal::kMaximize)->value();
  REQUIRE(best < best_trial);
  missed.config.target = (best + best_trial) / 2;
  CHECK(missed.run().ended_by.empty());
  CHECK(missed.trials().size() == all.size());
  CHECK(finished(missed));
  reached.config.target = best;
  CHECK(reached.run().ended_by.find("its target") == 0);
  CHECK(value_in(reached) == best);
  CHECK(finished(reached));
}

TEST_CASE("a study that ends early and is stopped again and again ends in the same table") {
  struct Case {
    const char *method, *stopping;
    std::optional<std::int64_t> epochs;
    std::optional<double> target;
  };
  const Case c =
      GENERATE(Case{"random", "none", 61, {}}, Case{"random", "asha", 50, {}}, Case{"tpe", "median", 55, {}},
               Case{"hyperband", "none", 120, {}}, Case{"random", "none", {}, 0.8}, Case{"tpe", "asha", {}, 0.8});
  const bool keep = GENERATE(true, false);
  if (!keep && c.method == std::string("hyperband")) return;  // too many states to catch up with
  CAPTURE(c.method, c.stopping, keep);
  StudyConfig config = random_config(40);
  config.method = c.method;
  if (c.stopping != std::string("none")) config.early_stopping = {{c.stopping}};
  config.width = 4;
  config.budget.epochs = c.epochs;
  config.target = c.target;
  StudyFixture undisturbed(config), stopped(config);
  CHECK(undisturbed.run().stopped_by == 0);
  // Where all states are lost, a run is long enough to get further than it has to catch up, or it is the only one.
  const int runs = stopped.run_in_pieces(keep ? 3 : 17, 1, keep);
  CHECK((runs > 1 || !keep));
  CHECK(stopped.table() == undisturbed.table());
}

TEST_CASE("without a run_cap Hyperband goes on, pass after pass, until its budget is used up") {
  StudyConfig config = digits_config();
  config.run_cap = kEndless;
  config.budget.epochs = 900;
  config.width = 16;
  StudyFixture study(config);
  const Outcome outcome = study.run();
  CHECK(total_epochs(study.trials()) == 900);
  CHECK(study.trials().size() > 98);
  CHECK(study.count(State::kComplete) > 8);
  CHECK(outcome.any_complete);
  for (const Status& status : study.recorder.statuses) CHECK_FALSE(status.planned);
}
