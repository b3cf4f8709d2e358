// Studies whose configurations are trained several times: blocks of trials, judged as one.

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <csignal>
#include <set>
#include <string>

#include "base/clock.hpp"
#include "engine/driver/goals/best_repetitions.hpp"
#include "engine/driver/study/redraw.hpp"
#include "engine/driver/study/study.hpp"
#include "engine/report/report.hpp"
#include "study_fixture.hpp"

using namespace hfta;
using namespace hfta::engine;
using namespace hfta::engine::testing;
using trials::Rank;
using trials::Repetitions;
using trials::State;
using trials::Trial;

namespace {

StudyConfig repeated(StudyConfig config, const Repetitions& repetitions) {
  config.repetitions = repetitions;
  for (trials::Parameter& axis : repetitions.axes()) config.space.push_back(std::move(axis));
  return config;
}

struct Case {
  const char* method;
  const char* stopping;
  Repetitions repetitions;
};

StudyConfig config_of(const Case& c, int run_cap) {
  StudyConfig config = random_config(run_cap);
  config.method = c.method;
  if (c.stopping != std::string("none")) {
    config.early_stopping = {{c.stopping}};
    config.early_stopping.front().options.min_trials = 2;
    config.early_stopping.front().options.confidence = 80;
  }
  config.method_options.tpe.startup_trials = 4;
  config.method_options.hyperband = {1, 9, 3};
  return repeated(config, c.repetitions);
}

std::vector<Trial> by_draw(StudyFixture& study) {
  const std::vector<Trial> all = study.trials();
  std::vector<Trial> order;
  for (const Trial* trial : trials::in_order(all, study.open()->draws(study.config.study))) order.push_back(*trial);
  return order;
}

// Every configuration has all of its repetitions, one behind another, with equal parameters.
void check_blocks(StudyFixture& study, std::size_t configurations) {
  const Repetitions& repetitions = study.config.repetitions;
  const std::vector<Trial> order = by_draw(study);
  CHECK(order.size() == configurations * static_cast<std::size_t>(repetitions.count()));
  for (std::size_t i = 0; i < order.size(); ++i) {
    const int draw = static_cast<int>(i);
    const trials::Params first = order[static_cast<std::size_t>(repetitions.first_of(draw))].params;
    INFO("draw " << draw);
    CHECK(order[i].params == repetitions.params_of(repetitions.configuration_of(first), repetitions.index_of(draw)));
    CHECK(order[i].state != State::kRunning);
  }
}

// Time passes as a test says.
class SlowClock final : public Clock {
 public:
  [[nodiscard]] Utc utc() const override { return SystemClock().utc(); }
  [[nodiscard]] double seconds() const override { return SystemClock().seconds() + passed; }
  std::atomic<double> passed = 0;  // read by the thread that writes to the store
};

void enqueue(const StudyFixture& study, const std::string& fixed) {
  const std::string sql = fmt::format(
      "BEGIN IMMEDIATE;"
      "INSERT INTO trials (number, study_id, state) SELECT (SELECT count(*) FROM trials), study_id, 'WAITING' FROM "
      "studies;"
      "INSERT INTO trial_system_attributes (trial_id, key, value_json)"
      " SELECT max(trial_id), 'fixed_params', '{}' FROM trials; COMMIT;",
      fixed);
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open(study.config.storage.c_str(), &db) == SQLITE_OK);
  sqlite3_busy_timeout(db, 10'000);
  CHECK(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(db);
}

}  // namespace

TEST_CASE("a study with repetitions comes to the same at any width, on any devices, stopped or not") {
  const Case c = GENERATE(Case{"random", "none", {3, 1}}, Case{"random", "median", {3, 1}},
                          Case{"random", "asha", {2, 2, Rank::kLower}}, Case{"hyperband", "none", {2, 1}},
                          Case{"random", "racing", {3, 2, Rank::kMedian}});
  INFO(c.method << " " << c.stopping);
  const StudyConfig config = config_of(c, 11);
  StudyFixture reference(config);
  reference.config.width = 1;
  reference.world.diverge = {7, 20};
  reference.world.diverge_at = 2;
  (void)reference.run();
  check_blocks(reference, 11);
  for (const auto& [width, devices, rounds] : {std::tuple(4, 1, 3), std::tuple(5, 3, 2), std::tuple(64, 2, 4)}) {
    CAPTURE(width, devices);
    StudyFixture whole(config), pieces(config);
    for (StudyFixture* study : {&whole, &pieces}) {
      study->config.width = width;
      study->world.diverge = {7, 20};
      study->world.diverge_at = 2;
    }
    (void)whole.run(devices);
    CHECK(whole.table() == reference.table());
    (void)pieces.run_in_pieces(rounds, devices, true);
    CHECK(pieces.table() == reference.table());
  }
}

TEST_CASE("configurations are those of the study without repetitions") {
  StudyFixture once(random_config(6)), often(config_of({"random", "none", {3, 1}}, 6));
  (void)once.run();
  (void)often.run();
  const std::vector<Trial> single = once.trials(), all = by_draw(often);
  REQUIRE(all.size() == 18);
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK(often.config.repetitions.configuration_of(all[i].params) == single[i / 3].params);
  }
}

TEST_CASE("a method that learns sees configurations, and each of its draws can be made again") {
  const Case c = GENERATE(Case{"tpe", "none", {3, 1}}, Case{"tpe", "median", {2, 1, Rank::kMedian}});
  INFO(c.stopping);
  StudyConfig config = config_of(c, 9);
  config.width = 4;
  StudyFixture undisturbed(config), stopped(config);
  CHECK(undisturbed.run().stopped_by == 0);
  check_blocks(undisturbed, 9);
  CHECK(stopped.run_in_pieces(7, 1, true) > 1);
  CHECK(stopped.table() == undisturbed.table());
  for (StudyFixture* study : {&undisturbed, &stopped}) {
    const std::unique_ptr<storage::Store> store = study->open();
    const std::vector<Redraw> all = redraw(study->config, *store);
    CHECK(all.size() == 9);
    for (const Redraw& one : all) CHECK(one.stored == one.drawn);
    // A run that goes on knows of every draw in which round it was made.
    for (const Trial& trial : study->trials()) CHECK(trial.seen_rounds.has_value());
  }
}

TEST_CASE("a grid is tried completely, each of its points several times") {
  StudyConfig config = random_config(1);
  config.method = "grid";
  config.run_cap.reset();
  config.space = {choice("lr", {0.1, 0.2}), choice("hidden", {std::int64_t{32}, std::int64_t{64}})};
  StudyFixture study(repeated(config, {2, 1}), Kept::kInFile);
  study.stop = SIGINT;
  (void)study.run();
  study.stop = 0;
  enqueue(study, R"({"lr": 0.2})");
  CHECK(study.run().stopped_by == 0);
  check_blocks(study, 5);
}

TEST_CASE("run_cap counts configurations, and may be raised") {
  StudyFixture study(config_of({"random", "asha", {3, 1}}, 4)), at_once(config_of({"random", "asha", {3, 1}}, 4));
  (void)study.run();
  check_blocks(study, 4);
  CHECK(study.recorder.statuses.back().planned == 12);
  study.config.run_cap = 6;
  (void)study.run();
  check_blocks(study, 6);
  study.config.run_cap = 5;
  CHECK_THROWS_WITH(study.run(), Catch::Contains("found 5, wanted at least 6"));
}

TEST_CASE("what another program asks for becomes a configuration with all of its repetitions") {
  StudyFixture study(config_of({"random", "none", {3, 1}}, 6), Kept::kInFile);
  study.config.width = 2;
  SlowClock clock;
  study.clock = &clock;
  study.world.after_epochs = [&](int runs) {
    clock.passed += 20;  // an epoch takes so long: few trials are entered ahead of their slots
    if (runs == 4) enqueue(study, R"({"lr": 0.5, "repeat": 2})");
    if (runs == 9) enqueue(study, R"({"hidden": 65})");
    if (runs == 11) enqueue(study, R"({"learning_rate": 65})");
  };
  CHECK(study.run().stopped_by == 0);
  const std::vector<Trial> order = by_draw(study);
  REQUIRE(order.size() == 18);
  int asked = 0, failed = 0;
  for (std::size_t first = 0; first < order.size(); first += 3) {
    CHECK_FALSE(order[first + 1].enqueued);
    if (!order[first].enqueued) continue;
    ++asked;
    for (std::size_t i = first; i < first + 3; ++i) {
      failed += order[i].state == State::kFail ? 1 : 0;
      if (order[i].state == State::kFail) CHECK_THAT(order[i].reason, Catch::StartsWith("enqueued with"));
    }
    if (order[first].state == State::kFail) continue;
    CHECK(order[first].params.front().second == trials::ParamValue(0.5));
    CHECK(order[first].params.back() == std::pair<std::string, trials::ParamValue>("repeat", std::int64_t{0}));
    CHECK(order[first + 2].params.back().second == trials::ParamValue(std::int64_t{2}));
  }
  CHECK(asked == 3);
  CHECK(failed == 6);
}

TEST_CASE("the best repetition of the best configuration is tested, and its weights are kept") {
  int different = 0;
  for (const std::uint64_t seed : {1, 2, 3, 4, 5, 6, 7, 8}) {
    StudyConfig config = config_of({"random", "none", {4, 1, Rank::kLower}}, 12);
    config.keep = 1;
    config.seed = seed;
    StudyFixture study(config);
    study.config.width = 7;
    (void)study.run();
    const std::vector<Trial> all = study.trials();
    const std::unique_ptr<storage::Store> store = study.open();
    const std::vector<const Trial*> found = best_trials(study.config, *store, all);
    REQUIRE(found.size() == 1);
    const Trial* best = found.front();
    CHECK(!best->test_metrics.empty());
    const Trial* luckiest = trials::best_of(all, study.config.objectives.front().goal);
    different += luckiest != best ? 1 : 0;
    storage::StudyStates states(study.files, study.checkpoints);
    const std::vector<int> kept = states.of(storage::StateKind::kFinished).trials();
    CHECK(std::set<int>(kept.begin(), kept.end()) == std::set<int>{best->number, luckiest->number});
  }
  CHECK(different > 0);  // or the case shows nothing
}

TEST_CASE("weights that may still be needed: of open configurations, and of the best that has ended") {
  BestRepetitions best({2, 1, Rank::kMean}, trials::Goal::kMinimize);
  const auto released = [&] {
    std::vector<int> numbers = best.take_released();
    std::sort(numbers.begin(), numbers.end());
    return numbers;
  };
  best.end(0, 10, State::kComplete, 0.5);
  best.end(2, 12, State::kComplete, 0.1);
  CHECK(best.contains(10));
  CHECK(best.contains(12));
  best.end(1, 11, State::kComplete, 0.7);
  CHECK(released() == std::vector<int>{11});
  best.end(3, 13, State::kComplete, 0.9);  // a mean of .5: better than .6
  CHECK(released() == std::vector<int>{10, 13});
  CHECK(best.contains(12));
  best.end(4, 14, State::kComplete, 0.0);
  best.end(5, 15, State::kFail, std::nullopt);
  CHECK(released() == std::vector<int>{14});
  best.end(6, 16, State::kPruned, 0.0);
  best.end(7, 17, State::kComplete, 0.0);
  CHECK(released() == std::vector<int>{17});
  CHECK(best.contains(12));
  BestRepetitions none({}, trials::Goal::kMinimize);
  none.end(0, 1, State::kComplete, 1.0);
  CHECK_FALSE(none.contains(1));
  CHECK(none.take_released().empty());
}
