// Trials that another program enqueues, as Optuna's enqueue_trial does: before a run, while it runs, and after it.

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <csignal>
#include <map>
#include <string>

#include "engine/driver/study/study.hpp"
#include "study_fixture.hpp"

using namespace hfta;
using namespace hfta::engine;
using namespace hfta::engine::testing;
using trials::State;
using trials::Trial;

namespace {

void run_sql(const StudyFixture& study, const std::string& sql) {
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open(study.config.storage.c_str(), &db) == SQLITE_OK);
  sqlite3_busy_timeout(db, 10'000);
  CHECK(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(db);
}

// What Optuna 4 and 5 write for study.enqueue_trial(fixed).
void enqueue(const StudyFixture& study, const std::string& fixed) {
  run_sql(study,
          fmt::format("BEGIN IMMEDIATE;"
                      "INSERT INTO trials (number, study_id, state) SELECT (SELECT count(*) FROM trials), study_id,"
                      " 'WAITING' FROM studies;"
                      "INSERT INTO trial_system_attributes (trial_id, key, value_json)"
                      " SELECT max(trial_id), 'fixed_params', '{}' FROM trials; COMMIT;",
                      fixed));
}

// The study exists and none of its trials has been drawn.
void begin(StudyFixture& study) {
  study.stop = SIGINT;
  (void)study.run();
  study.stop = 0;
}

trials::ParamValue param(const Trial& trial, const std::string& name) {
  const auto found =
      std::find_if(trial.params.begin(), trial.params.end(), [&](const auto& p) { return p.first == name; });
  REQUIRE(found != trial.params.end());
  return found->second;
}

// Time passes as a test says.
class SlowClock final : public Clock {
 public:
  [[nodiscard]] Utc utc() const override { return SystemClock().utc(); }
  [[nodiscard]] double seconds() const override { return SystemClock().seconds() + passed; }
  std::atomic<double> passed = 0;  // read by the thread that writes to the store
};

std::vector<Trial> enqueued(StudyFixture& study) {
  std::vector<Trial> those = study.trials();
  std::erase_if(those, [](const Trial& trial) { return !trial.enqueued; });
  return those;
}

}  // namespace

TEST_CASE("trials enqueued before a run come first, completed by the sampler, and count to run_cap") {
  StudyFixture study(random_config(6), Kept::kInFile);
  study.config.width = 2;
  begin(study);
  enqueue(study, R"({"lr": 0.5, "hidden": 64.0})");
  enqueue(study, R"({"lr": 0.25})");
  CHECK(study.run().stopped_by == 0);
  const std::vector<Trial> all = study.trials();
  REQUIRE(all.size() == 6);
  CHECK(study.count(State::kComplete) == 6);
  CHECK(all[0].enqueued);
  CHECK(all[1].enqueued);
  CHECK(param(all[0], "lr") == trials::ParamValue(0.5));
  CHECK(param(all[0], "hidden") == trials::ParamValue(std::int64_t{64}));
  CHECK(param(all[1], "lr") == trials::ParamValue(0.25));
  CHECK(all[1].params.size() == study.config.space.size());
  // The sampler's own trials are those that it would have drawn first.
  StudyFixture alone(random_config(4));
  (void)alone.run();
  const std::vector<Trial> undisturbed = alone.trials();
  for (std::size_t i = 0; i < 4; ++i) CHECK(all[i + 2].params == undisturbed[i].params);
}

TEST_CASE("a trial enqueued while the study runs takes the next place, on every method") {
  const std::string method = GENERATE(as<std::string>(), "random", "hyperband");
  StudyFixture study(method == "random" ? random_config(20) : digits_config(), Kept::kInFile);
  study.config.width = 2;
  SlowClock clock;
  study.clock = &clock;
  study.world.after_epochs = [&](int runs) {
    clock.passed += 10;  // an epoch takes so long: few trials are entered ahead of their slots
    if (runs == 3) enqueue(study, R"({"lr": 0.5})");
  };
  CHECK(study.run().stopped_by == 0);
  const int cap = *study.config.run_cap;
  CHECK(study.trials().size() == static_cast<std::size_t>(cap));
  REQUIRE(enqueued(study).size() == 1);
  const Trial asked = enqueued(study).front();
  CHECK(param(asked, "lr") == trials::ParamValue(0.5));
  CHECK((asked.state == State::kComplete || asked.state == State::kPruned));
  CHECK_FALSE(asked.epochs.empty());
  CHECK(study.count(State::kWaiting) == 0);
  CHECK(study.count(State::kRunning) == 0);
}

TEST_CASE("what cannot be tried fails with words, and the study goes on") {
  StudyFixture study(random_config(6), Kept::kInFile);
  begin(study);
  const std::map<std::string, std::string> cases = {
      {R"({"hidden": 65})", "enqueued with hidden = 65, wanted a value that its distribution (categorical) can give"},
      {R"({"learning_rate": 1})", "enqueued with learning_rate, which is no parameter of the study"},
      {R"({"lr": [1, 2]})", "enqueued with lr = the text '[1,2]', wanted a value"},
      {R"({"lr": NaN})", "enqueued with lr = nan, wanted a value"},
      {R"(not JSON)", "enqueued with fixed_params, which is no parameter"}};
  for (const auto& [fixed, words] : cases) enqueue(study, fixed);
  CHECK(study.run().stopped_by == 0);
  const std::vector<Trial> all = study.trials();
  REQUIRE(all.size() == 6);
  std::size_t i = 0;
  for (const auto& [fixed, words] : cases) {
    CHECK(all[i].state == State::kFail);
    CHECK(all[i].params.empty());  // nothing was tried, so that nothing is learnt of it
    CHECK_THAT(all[i++].reason, Catch::StartsWith(words));
  }
  CHECK(all[5].state == State::kComplete);
  CHECK(study.run().stopped_by == 0);  // and what is stored of them can be read again
}

TEST_CASE("with repetitions an enqueued trial may name any that there is, and becomes the first of its configuration") {
  StudyConfig config = random_config(3);
  config.repetitions = {3, 1, trials::Rank::kMean};
  for (trials::Parameter& axis : config.repetitions.axes()) config.space.push_back(std::move(axis));
  StudyFixture study(config, Kept::kInFile);
  begin(study);
  enqueue(study, R"({"lr": 0.5, "repeat": 2})");  // as an earlier trial's params have it
  enqueue(study, R"({"lr": 0.5, "repeat": 3})");
  CHECK(study.run().stopped_by == 0);
  const std::vector<Trial> all = study.trials();
  REQUIRE(all.size() == 9);
  CHECK(param(all[0], "lr") == trials::ParamValue(0.5));
  CHECK(param(all[0], "repeat") == trials::ParamValue(std::int64_t{0}));
  CHECK(all[1].state == State::kFail);
  CHECK(all[1].params.empty());
  CHECK_THAT(all[1].reason, Catch::StartsWith("enqueued with repeat = 3, wanted a value that its distribution"));
  CHECK(std::count_if(all.begin(), all.end(), [](const Trial& trial) {
          return trial.epochs.size() > 0 && param(trial, "lr") == trials::ParamValue(0.5);
        }) == 3);
}

TEST_CASE("one for which there is no room waits for a higher run_cap") {
  StudyFixture study(random_config(3), Kept::kInFile);
  (void)study.run();
  enqueue(study, R"({"lr": 0.5})");
  {
    const std::unique_ptr<storage::Store> store = study.open();
    CHECK(is_finished(*store, study.config, *store->find("digits")));
  }
  study.config.run_cap = 4;
  CHECK(study.run().stopped_by == 0);
  CHECK(study.count(State::kComplete) == 4);
  CHECK(enqueued(study).size() == 1);
}

TEST_CASE("a grid is tried as a whole, with what is enqueued beside it") {
  StudyConfig config = random_config(1);
  config.method = "grid";
  config.run_cap.reset();
  config.space = {choice("lr", {0.1, 0.2}), choice("hidden", {std::int64_t{32}, std::int64_t{64}})};
  StudyFixture study(config, Kept::kInFile);
  begin(study);
  enqueue(study, R"({"lr": 0.2})");
  CHECK(study.run().stopped_by == 0);
  CHECK(study.count(State::kComplete) == 5);
  enqueue(study, R"({"lr": 0.1, "hidden": 32})");
  {
    const std::unique_ptr<storage::Store> store = study.open();
    CHECK_FALSE(is_finished(*store, study.config, *store->find("digits")));
  }
  CHECK(study.run().stopped_by == 0);
  CHECK(study.count(State::kComplete) == 6);
}

TEST_CASE("a trial that another program takes first is left to it") {
  StudyFixture study(random_config(2), Kept::kInFile);
  begin(study);
  enqueue(study, R"({"lr": 0.5})");
  const std::unique_ptr<storage::Store> store = study.open();
  REQUIRE(store->enqueued("digits").size() == 1);
  run_sql(study, "UPDATE trials SET state = 'RUNNING' WHERE state = 'WAITING'");
  CHECK_FALSE(store->claim("digits", 0, {}, {}, ""));
  CHECK(store->enqueued("digits").empty());
  CHECK(store->draws("digits").empty());
}

TEST_CASE("a study with enqueued trials comes to the same however often it is stopped") {
  StudyConfig config = digits_config();
  config.method_options.hyperband = {1, 9, 3};
  config.run_cap = 17;
  const auto with_two = [](StudyFixture& study) {
    begin(study);
    enqueue(study, R"({"lr": 0.5})");
    enqueue(study, R"({"hidden": 32})");
  };
  StudyFixture whole(config, Kept::kInFile);
  with_two(whole);
  (void)whole.run();
  for (const bool keep_checkpoints : {true, false}) {
    StudyFixture pieces(config, Kept::kInFile);
    with_two(pieces);
    (void)pieces.run_in_pieces(keep_checkpoints ? 3 : 40, 1, keep_checkpoints);
    CHECK(pieces.table() == whole.table());
  }
}
