// Whole studies with fake trainers: what they come to, and that nothing but the config decides it.

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <map>
#include <set>
#include <tuple>

#include "base/error.hpp"
#include "base/text.hpp"
#include "study_fixture.hpp"

using namespace hfta;
using namespace hfta::engine;
using namespace hfta::engine::testing;
using trials::State;

namespace {

StudyConfig grid_config() {
  StudyConfig config = digits_config();
  config.method = "grid";
  config.run_cap.reset();
  config.space = {choice("a", {0.1, 0.2, 0.3}), range("b", trials::DistributionKind::kIntUniform, 1, 4),
                  choice("hidden", {std::int64_t{8}, std::int64_t{16}})};
  return config;
}

}  // namespace

TEST_CASE("hyperband over two passes is 98 trials, 16 complete, 714 trial-epochs") {
  StudyFixture study(digits_config());
  const Outcome outcome = study.run();
  CHECK(outcome.stopped_by == 0);
  CHECK(outcome.any_complete);
  const auto all = study.trials();
  CHECK(all.size() == 98);
  CHECK(study.count(State::kComplete) == 16);
  CHECK(study.count(State::kPruned) == 82);
  CHECK(total_epochs(all) == 714);
  CHECK(study.world.trial_epochs == 714);  // survivors go on from where they stood: nothing is trained twice
  for (const auto& trial : all) {
    INFO("trial " << trial.number);
    REQUIRE(trial.value());
    CHECK(*trial.value() == trial.epochs.back().metrics.at("val_accuracy"));
    CHECK((trial.state == State::kComplete) == (trial.epochs.size() == 27));
    CHECK(trial.started);
    CHECK(trial.completed);
  }
}

TEST_CASE("a study comes to the same at any width and on any number of devices") {
  const int devices = GENERATE(1, 2, 3);
  const int width = GENERATE(1, 4, 16, 32, 1000);
  CAPTURE(devices, width);
  StudyFixture study(digits_config());
  study.config.width = width;
  (void)study.run(devices);
  CHECK(study.table() == reference_table());
}

TEST_CASE("the recommended width is used where none is asked for") {
  StudyFixture study(digits_config());
  study.world.width = 5;
  (void)study.run(2);
  CHECK(study.table() == reference_table());
  for (const auto& round : study.open()->rounds("digits")) CHECK(round.width <= 5);
}

TEST_CASE("the first array has as many trials as it can, however many that are") {
  for (const bool recommended : {false, true}) {
    CAPTURE(recommended);
    StudyFixture study(random_config(1600));
    study.config.width = recommended ? std::nullopt : std::optional(600);
    study.world.width = 600;
    CHECK(study.run().stopped_by == 0);
    const auto first = std::find_if(study.recorder.events.begin(), study.recorder.events.end(),
                                    [](const Event& event) { return std::holds_alternative<ArrayChanged>(event); });
    REQUIRE(first != study.recorder.events.end());
    CHECK(std::get<ArrayChanged>(*first).width > 300);  // half of those that are planned, of one partition
  }
}

TEST_CASE("other strategies come to the same at any width, on any devices, stopped or not") {
  const bool grid = GENERATE(true, false);
  const StudyConfig config = grid ? grid_config() : random_config(70);
  StudyFixture reference(config);
  reference.config.width = 1;
  (void)reference.run();
  CHECK(reference.count(State::kComplete) == (grid ? 24 : 70));
  CHECK(total_epochs(reference.trials()) == (grid ? 24 : 70) * 5);
  for (const int width : {3, 8, 64}) {
    for (const int devices : {1, 3}) {
      CAPTURE(grid, width, devices);
      StudyFixture whole(config);
      whole.config.width = width;
      (void)whole.run(devices);
      CHECK(whole.table() == reference.table());
      StudyFixture pieces(config);
      pieces.config.width = width;
      (void)pieces.run_in_pieces(2, devices, true);
      CHECK(pieces.table() == reference.table());
    }
  }
}

TEST_CASE("random search draws no further ahead than its arrays need") {
  StudyFixture study(random_config(5000));
  study.config.width = 4;
  study.world.after_epochs = [&](int runs) {
    if (runs == 1) study.stop = SIGINT;
  };
  (void)study.run();
  CHECK(study.trials().size() < 1000);
}

TEST_CASE("a study without a cap goes on until it is stopped") {
  StudyConfig config = random_config(1);
  config.run_cap.reset();
  StudyFixture study(config);
  study.world.after_epochs = [&](int runs) {
    if (runs == 400) study.stop = SIGINT;
  };
  const Outcome outcome = study.run();
  CHECK(outcome.stopped_by == SIGINT);
  CHECK(study.count(State::kComplete) >= 400 / 5 * 8 - 20);
  CHECK_FALSE(study.recorder.statuses.back().planned);
  CHECK_FALSE(study.recorder.statuses.back().epochs_left);
}

TEST_CASE("if every trial diverges the study ends, and none is complete") {
  for (const double diverged : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    StudyFixture study(digits_config());
    study.world.diverge = {-1};
    study.world.diverged = diverged;
    const Outcome outcome = study.run();
    CHECK(outcome.stopped_by == 0);
    CHECK_FALSE(outcome.any_complete);
    CHECK(study.count(State::kFail) == 98);
    CHECK(study.world.tests == 0);
  }
}

TEST_CASE("a diverged trial fails with a reason, and the rest of the study is as wide and as far as it can be") {
  const std::string metric = GENERATE("train_loss", "val_accuracy");
  const double value = GENERATE(as<double>(), std::nan(""), HUGE_VAL, -HUGE_VAL);
  StudyFixture study(digits_config());
  study.world.diverge = {3, 40, 41};
  study.world.diverge_at = 1;
  study.world.diverging_metric = metric;
  study.world.diverged = value;
  (void)study.run();
  CHECK(study.count(State::kFail) == 3);
  for (const auto& trial : study.trials()) {
    if (trial.state != State::kFail) continue;
    CHECK(study.world.diverge.contains(trial.number));
    CHECK(trial.reason == fmt::format("{} is {} at epoch 1", metric, shortest(value)));
    CHECK_FALSE(trial.value());
    REQUIRE(trial.epochs.size() == 1);  // the epoch itself is kept
    CHECK_FALSE(std::isfinite(trial.epochs[0].metrics.at(metric)));
  }
  StudyFixture again(digits_config());
  again.world.diverge = study.world.diverge;
  again.world.diverging_metric = metric;
  again.world.diverged = value;
  again.config.width = 3;
  (void)again.run_in_pieces(4, 2, true);
  CHECK(again.table() == study.table());
}

TEST_CASE("a trial that diverges late frees its slot and never ranks") {
  StudyFixture study(random_config(12));
  study.world.diverge = {2};
  study.world.diverge_at = 3;
  study.config.width = 4;
  (void)study.run();
  CHECK(study.count(State::kFail) == 1);
  CHECK(study.count(State::kComplete) == 11);
  CHECK(study.trials().at(2).reason == "train_loss is nan at epoch 3; finite until epoch 2");
  CHECK(study.world.trial_epochs == 11 * 5 + 3);
}

TEST_CASE("a metric that nobody takes is an error that names those there are") {
  StudyFixture study(digits_config());
  study.config.objectives.front().metric = "val_acuracy";
  CHECK_THROWS_WITH(study.run(), Catch::Contains("'val_acuracy'") && Catch::Contains("did you mean 'val_accuracy'?"));
}

TEST_CASE("slots that fall empty are refilled at once") {
  struct Case {
    StudyConfig config;
    int width;
    double at_least;
  };
  const Case cases[] = {{random_config(100), 8, 0.98}, {random_config(64), 16, 0.98}, {grid_config(), 4, 0.98},
                        {digits_config(), 8, 0.95},    {digits_config(), 16, 0.95},   {digits_config(), 32, 0.95}};
  for (const Case& c : cases) {
    StudyFixture study(c.config);
    study.config.width = c.width;
    (void)study.run();
    const double share = static_cast<double>(study.world.trial_epochs) / static_cast<double>(study.world.slot_epochs);
    INFO("width " << c.width << ": " << share << " of " << study.world.slot_epochs << " slot-epochs, "
                  << study.world.opens << " arrays, " << study.world.resizes << " resizes, " << study.world.inserts
                  << " inserts, runs " << study.world.runs);
    CHECK(share >= c.at_least);
  }
}

TEST_CASE("rounds, arrays and slots are recorded as they were") {
  StudyFixture study(digits_config());
  study.config.width = 16;
  (void)study.run_in_pieces(9, 2, true);
  const std::unique_ptr<storage::Store> store = study.open();
  std::map<std::pair<int, int>, storage::RoundRecord> rounds;
  for (const auto& round : store->rounds("digits")) {
    CHECK(round.occupied >= 1);
    CHECK(round.occupied <= round.width);
    CHECK(rounds.emplace(std::pair(round.round, round.array), round).second);
  }
  std::map<int, std::string> partition_of;
  for (const auto& array : store->arrays("digits")) partition_of[array.array] = array.partition;
  std::map<int, trials::Trial> by_number;
  for (const auto& trial : store->trials("digits")) by_number[trial.number] = trial;
  std::map<std::pair<int, int>, int> filled;
  std::map<int, int> epochs;
  for (const auto& place : store->occupancy("digits")) {
    const storage::RoundRecord& round = rounds.at({place.round, place.array});
    CHECK(place.slot < round.width);
    ++filled[{place.round, place.array}];
    CHECK(place.epoch == ++epochs[place.trial]);
    CHECK(partition_of.at(place.array) == "hidden=" + trials::to_text(by_number.at(place.trial).params.at(3).second));
  }
  CHECK(filled.size() == rounds.size());
  for (const auto& [key, count] : filled) CHECK(count == rounds.at(key).occupied);
}

TEST_CASE("a first cap below the trials that there are is refused, on every method") {
  const std::string method = GENERATE("hyperband", "grid", "asha");
  CAPTURE(method);
  StudyConfig made = method == "hyperband" ? digits_config() : random_config(1);
  made.run_cap.reset();
  if (method != "hyperband") {
    made.method = "grid";
    made.space = {choice("hidden", {std::int64_t{64}, std::int64_t{128}}), choice("lr", {0.1, 0.2, 0.3})};
  }
  if (method == "asha") made.early_stopping = {{"asha"}};
  StudyFixture study(std::move(made));
  (void)study.run();
  const std::size_t trials = study.trials().size();
  study.config.run_cap = 3;
  REQUIRE_THROWS_WITH(study.run(), Catch::Contains("run_cap: found 3, wanted at least " + std::to_string(trials)));
}

TEST_CASE("a raised cap goes on with the study") {
  SECTION("hyperband: the next pass begins") {
    StudyFixture study(digits_config());
    study.config.run_cap = 49;
    (void)study.run();
    CHECK(study.count(State::kComplete) == 8);
    study.config.run_cap = 98;
    (void)study.run();
    const std::string raised = study.table();
    // The best of the first half was tested as well when that half was the whole.
    std::string expected = reference_table();
    CHECK(study.count(State::kComplete) == 16);
    CHECK(raised.substr(0, 40) == expected.substr(0, 40));
    CHECK(total_epochs(study.trials()) == 714);
  }
  SECTION("random: more trials") {
    StudyFixture study(random_config(10));
    (void)study.run();
    study.config.run_cap = 25;
    (void)study.run();
    StudyFixture whole(random_config(25));
    (void)whole.run();
    CHECK(study.count(State::kComplete) == 25);
    const auto a = study.trials(), b = whole.trials();
    for (std::size_t i = 0; i < 25; ++i) CHECK(a.at(i).value() == b.at(i).value());
  }
  SECTION("a smaller cap is refused") {
    StudyFixture study(random_config(10));
    (void)study.run();
    study.config.run_cap = 9;
    CHECK_THROWS_WITH(study.run(), Catch::Contains("run_cap: found 9, wanted at least 10"));
  }
}

TEST_CASE("the best trial is tested once, when the study ends") {
  StudyFixture study(digits_config());
  (void)study.run_in_pieces(11, 1, true);
  CHECK(study.world.tests == 1);
  (void)study.run();
  CHECK(study.world.tests == 1);
  const auto all = study.trials();
  const trials::Trial* best = trials::best_of(all, trials::Goal::kMaximize);
  REQUIRE(best != nullptr);
  CHECK(best->test_metrics.at("test_accuracy") == Approx(*best->value() - 0.01).epsilon(1e-12));
  for (const auto& trial : all) CHECK(trial.test_metrics.empty() == (trial.number != best->number));
}

TEST_CASE("metric.select best: a trial's value is its best epoch's, with that epoch's weights") {
  StudyConfig config = random_config(20);
  config.select_best = true;
  StudyFixture reference(config);
  reference.config.width = 1;
  (void)reference.run();
  bool differs = false;
  for (const auto& trial : reference.trials()) {
    double best = -1;
    for (const auto& record : trial.epochs) best = std::max(best, record.metrics.at("val_accuracy"));
    CHECK(*trial.value() == best);
    differs = differs || best != trial.epochs.back().metrics.at("val_accuracy");
  }
  REQUIRE(differs);
  for (const int rounds : {1, 2, 3}) {
    StudyFixture pieces(config);
    pieces.config.width = 6;
    (void)pieces.run_in_pieces(rounds, 2, true);
    CHECK(pieces.table() == reference.table());  // test metrics, too, are the best epoch's
    storage::Checkpoints finished(pieces.files, pieces.checkpoints / "finished");
    CHECK(finished.trials().size() == 10);
  }
}

TEST_CASE("trials that Optuna adds in between have numbers of their own and are left alone") {
  StudyFixture study(random_config(600), Kept::kInFile);  // more than are drawn at once
  study.config.width = 8;
  study.world.after_epochs = [&](int runs) {
    if (runs == 12) study.stop = SIGINT;
  };
  (void)study.run();
  const int ours = static_cast<int>(study.trials().size());
  REQUIRE(ours < 600);
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open(study.config.storage.c_str(), &db) == SQLITE_OK);
  const std::string sql = fmt::format(
      "INSERT INTO trials (number, study_id, state, datetime_start, datetime_complete) "
      "SELECT {}, study_id, 'COMPLETE', '2026-01-01 00:00:00.000000', '2026-01-01 00:00:01.000000' FROM studies;"
      "INSERT INTO trial_values (trial_id, objective, value, value_type) "
      "SELECT max(trial_id), 0, 0.001, 'FINITE' FROM trials;",
      ours);
  CHECK(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(db);
  study.stop = 0;
  study.world.after_epochs = nullptr;
  const Outcome outcome = study.run();
  CHECK(outcome.stopped_by == 0);
  const auto all = study.trials();
  REQUIRE(all.size() == 601);
  CHECK(study.count(State::kComplete) == 601);
  CHECK(all.at(static_cast<std::size_t>(ours)).epochs.empty());
  const std::vector<int> draws = study.open()->draws("digits");
  REQUIRE(draws.size() == 600);
  StudyFixture alone(random_config(600));
  (void)alone.run();
  const auto undisturbed = alone.trials();
  for (std::size_t draw = 0; draw < draws.size(); ++draw) {
    CHECK(draws[draw] == static_cast<int>(draw) + (static_cast<int>(draw) >= ours ? 1 : 0));
    CHECK(all.at(static_cast<std::size_t>(draws[draw])).params == undisturbed.at(draw).params);
  }
}

TEST_CASE("a wall clock that jumps changes no duration") {
  class Jumping final : public Clock {
   public:
    [[nodiscard]] Utc utc() const override { return SystemClock().utc() + jump; }
    [[nodiscard]] double seconds() const override { return SystemClock().seconds(); }
    std::chrono::hours jump{0};
  };
  for (const int days : {-1, 3650}) {
    CAPTURE(days);
    Jumping clock;
    StudyFixture study(random_config(4));
    study.config.width = 4;
    study.clock = &clock;
    study.world.after_epochs = [&](int runs) {
      if (runs == 2) clock.jump = std::chrono::hours(24 * days);
    };
    CHECK(study.run().stopped_by == 0);
    for (const auto& trial : study.trials()) {
      REQUIRE((trial.started && trial.completed));
      CHECK(*trial.completed >= *trial.started);
      CHECK(*trial.completed - *trial.started < std::chrono::hours(1));
    }
  }
}

TEST_CASE("progress counts what is durable and comes to nothing left") {
  StudyFixture study(digits_config());
  study.config.width = 16;
  (void)study.run();
  REQUIRE_FALSE(study.recorder.statuses.empty());
  long before = 0;
  for (const Status& s : study.recorder.statuses) {
    CHECK(s.planned == 98);
    CHECK(s.complete + s.pruned + s.failed + s.running + s.waiting == 98);
    CHECK(s.epochs > before);
    CHECK(s.epochs + s.epochs_left.value() == 714);
    CHECK(s.best.has_value());
    before = static_cast<long>(s.epochs);
  }
  const Status& last = study.recorder.statuses.back();
  CHECK(last.epochs == 714);
  CHECK(last.complete == 16);
  CHECK(last.round == static_cast<int>(study.recorder.statuses.size()));
}
