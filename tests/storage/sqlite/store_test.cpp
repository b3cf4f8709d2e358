/// What is written is what is read: studies, trials, epochs, arrays.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <limits>
#include <optional>
#include <vector>

#include "storage/sqlite/connection.hpp"
#include "storage/sqlite/sqlite_store.hpp"
#include "storage/sqlite/utc.hpp"
#include "tests/storage/checks.hpp"
#include "tests/storage/samples.hpp"

namespace hfta::storage::testing {
namespace {

namespace fs = std::filesystem;
using Mode = SqliteStore::Mode;
using trials::State;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// One number from the store's file, asked of SQLite directly.
std::int64_t ask(const std::filesystem::path& file, const char* sql) {
  Connection connection(file, false, false);
  Query query = connection.query(sql);
  REQUIRE(query.next());
  return query.integer(0);
}

TEST_CASE("store: a study reads back as it was written", "[store]") {
  const TempFolder folder;
  const auto file = folder / "digits.db";
  {
    SqliteStore store = SqliteStore::open(file, Mode::kCreate);
    write_sample(store, "digits");
    check_equal(store.trials("digits"), sample_trials());
  }
  const Mode mode = GENERATE(Mode::kReadOnly, Mode::kReadWrite, Mode::kCreate);
  SqliteStore store = SqliteStore::open(file, mode);
  check_equal(store.trials("digits"), sample_trials());

  const auto record = store.find("digits");
  REQUIRE(record);
  const StudyRecord wanted = sample_study("digits");
  CHECK(record->name == wanted.name);
  CHECK(record->objectives.front().metric == wanted.objectives.front().metric);
  CHECK((record->objectives.front().goal == wanted.objectives.front().goal));
  CHECK(record->config == wanted.config);
  CHECK(record->config_json == wanted.config_json);
  CHECK(record->run_caps == wanted.run_caps);
  REQUIRE(record->space.size() == wanted.space.size());
  for (std::size_t i = 0; i < wanted.space.size(); ++i) {
    const trials::Distribution &a = record->space[i].distribution, &b = wanted.space[i].distribution;
    INFO(wanted.space[i].name);
    CHECK(record->space[i].name == wanted.space[i].name);
    CHECK((a.kind == b.kind && a.values == b.values && a.probabilities == b.probabilities && a.integer == b.integer));
    CHECK((a.min == b.min && a.max == b.max && a.mu == b.mu && a.sigma == b.sigma && a.q == b.q));
  }
  CHECK_FALSE(store.find("other"));
  CHECK(store.draws("digits") == std::vector<int>{0, 1, 2, 3, 4, 5});
}

struct StateCase {
  State state;
  std::vector<double> given;
  std::optional<double> stored;
  const char* type;  // in trial_values; nullptr: no row
};

TEST_CASE("store: values follow Optuna's rules for each state", "[store]") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const StateCase c = GENERATE_COPY(values<StateCase>({{State::kComplete, {0.5}, 0.5, "FINITE"},
                                                       {State::kComplete, {kInfinity}, kInfinity, "INF_POS"},
                                                       {State::kComplete, {-kInfinity}, -kInfinity, "INF_NEG"},
                                                       {State::kPruned, {0.5}, 0.5, "FINITE"},
                                                       {State::kPruned, {kNaN}, std::nullopt, nullptr},
                                                       {State::kPruned, {}, std::nullopt, nullptr},
                                                       {State::kFail, {0.5}, std::nullopt, nullptr},
                                                       {State::kFail, {kNaN}, std::nullopt, nullptr},
                                                       {State::kRunning, {0.5}, std::nullopt, nullptr}}));
  const TempFolder folder;
  const auto file = folder / "s.db";
  SqliteStore store = SqliteStore::open(file, Mode::kCreate);
  store.create(sample_study("s"));
  (void)store.add_trials("s", {{params_of(0)}}, at(0));
  Changes first, changes;
  first.states = {{0, State::kComplete, {0.125}, "", at(5)}};
  store.commit("s", first);  // whatever stood there before goes
  changes.states = {{0, c.state, c.given, "why", at(7)}};
  store.commit("s", changes);
  const trials::Trial trial = store.trials("s").at(0);
  CHECK((trial.state == c.state));
  CHECK(trial.value() == c.stored);
  CHECK(trial.reason == "why");
  CHECK(trial.completed.has_value() == (c.state != State::kRunning));
  CHECK(ask(file, "SELECT count(*) FROM trial_values") == (c.type != nullptr ? 1 : 0));
  if (c.type != nullptr) {
    const std::string sql = std::string("SELECT count(*) FROM trial_values WHERE value_type = '") + c.type + "'";
    CHECK(ask(file, sql.c_str()) == 1);
  }
}

TEST_CASE("store: times are UTC in Optuna's form, and bad ones are only missing", "[store]") {
  CHECK(utc_text(at(0.000001)) == "2026-11-21 07:00:00.000001");
  CHECK(utc_text(trials::UtcTime(std::chrono::microseconds(-1))) == "1969-12-31 23:59:59.999999");
  const std::pair<const char*, std::optional<trials::UtcTime>> cases[] = {{"2026-11-21 07:00:00.000001", at(0.000001)},
                                                                          {"2026-11-21 07:00:01", at(1)},
                                                                          {"2026-11-21 07:00:00.25", at(0.25)},
                                                                          {"2026-11-21T07:00:00.5", at(0.5)},
                                                                          {"2026-02-30 07:00:00", std::nullopt},
                                                                          {"2026-11-21 24:00:00", std::nullopt},
                                                                          {"2026-11-21 07:00:00Z", std::nullopt},
                                                                          {"2026-11-21 07:00:00.", std::nullopt},
                                                                          {"2026-11-21 07:00:00.1234567", std::nullopt},
                                                                          {"2026-11-21", std::nullopt},
                                                                          {"", std::nullopt},
                                                                          {"-026-11-21 07:00:00", std::nullopt},
                                                                          {"2026-11-21 07:+1:00", std::nullopt},
                                                                          {"2026-11-21 07:00:60", std::nullopt}};
  for (const auto& [text, wanted] : cases) {
    INFO(text);
    CHECK((utc_from(text) == wanted));
  }
}

TEST_CASE("store: Optuna's programs may delete a study; its ids come back without our old rows", "[store]") {
  const TempFolder folder;
  const auto file = folder / "s.db";
  SqliteStore store = SqliteStore::open(file, Mode::kCreate);
  write_sample(store, "s");
  {
    Connection other(file, true, false);  // what optuna.delete_study does, in its order
    other.execute(
        "PRAGMA foreign_keys=OFF; BEGIN; DELETE FROM trial_params; DELETE FROM trial_values;"
        "DELETE FROM trial_intermediate_values; DELETE FROM trials; DELETE FROM study_directions;"
        "DELETE FROM study_system_attributes; DELETE FROM studies; COMMIT");
  }
  for (const char* sql : {"SELECT count(*) FROM hfta_studies", "SELECT count(*) FROM hfta_trials",
                          "SELECT count(*) FROM hfta_epoch_metrics", "SELECT count(*) FROM hfta_test_metrics",
                          "SELECT count(*) FROM hfta_arrays", "SELECT count(*) FROM hfta_rounds",
                          "SELECT count(*) FROM hfta_occupancy", "SELECT count(*) FROM hfta_leases"}) {
    INFO(sql);
    CHECK(ask(file, sql) == 0);
  }
  check_refused(file, "no study 's'", [&] { store.commit("s", sample_round(0)); });
  write_sample(store, "s");
  check_equal(store.trials("s"), sample_trials());
}

TEST_CASE("store: constraints count as Optuna counts them", "[store]") {
  struct Case {
    const char *key, *json;
    bool violated;
  };
  const TempFolder folder;
  const fs::path file = folder / "s.db";
  write_store(file);
  for (const Case& c : std::vector<Case>{{"constraints", "[0.5]", true},
                                         {"constraints", "[-1.0, 0.0]", false},
                                         {"constraints", "[-1.0, 2]", true},
                                         {"constraints", "[Infinity]", true},
                                         {"constraints", "[-Infinity, -1]", false},
                                         {"constraints", "[true]", true},
                                         {"constraints", "[false]", false},
                                         {"constraints", "Infinity", true},
                                         {"constraints:memory", "1", true},
                                         {"constraints:memory", "true", true},
                                         {"constraints:memory", "-0.5", false},
                                         {"constraints_note", "1", false},
                                         {"constraints", "\"5\"", false},
                                         {"constraints", "[", false},
                                         {"constraints", "{\"a\": 1}", false}}) {
    CAPTURE(c.key, c.json);
    const std::string sql = fmt::format(
        "DELETE FROM trial_system_attributes WHERE trial_id = 1;"
        " INSERT INTO trial_system_attributes (trial_id, key, value_json) VALUES (1, '{}', '{}')",
        c.key, c.json);
    Connection(file, true, false).execute(sql.c_str());
    SqliteStore store = SqliteStore::open(file, Mode::kReadOnly);
    CHECK(store.trials("s")[0].feasible == !c.violated);
  }
}

TEST_CASE("store: steps of Optuna's programs may count anything", "[store]") {
  const TempFolder folder;
  const fs::path file = folder / "s.db";
  write_store(file);
  Connection(file, true, false)
      .execute(
          "INSERT INTO trials (trial_id, number, study_id, state) VALUES (90, 6, 1, 'COMPLETE');"
          " INSERT INTO trial_intermediate_values (trial_id, step, intermediate_value, intermediate_value_type)"
          " VALUES (90, 7, 0.5, 'FINITE'), (90, 3000000000, 0.25, 'FINITE'), (90, -3000000000, 1, 'FINITE')");
  const std::vector<trials::Trial> trials = SqliteStore::open(file, Mode::kReadOnly).trials("s");
  REQUIRE(trials.back().epochs.size() == 3);
  CHECK(trials.back().epochs[1].epoch == 7);
  CHECK(trials.back().epochs[2].epoch == std::numeric_limits<int>::max());
}

TEST_CASE("store: where a trial was deleted no other one is taken for it", "[store]") {
  const TempFolder folder;
  const auto file = folder / "s.db";
  SqliteStore store = SqliteStore::open(file, Mode::kCreate);
  write_sample(store, "s");
  Connection(file, true, false).execute("PRAGMA foreign_keys=OFF; DELETE FROM trials WHERE number = 1");
  SqliteStore next = SqliteStore::open(file, Mode::kReadWrite);
  Changes changes;
  changes.test_metrics = {{2, {{"test_loss", 1.0}}}};
  check_refused(file, "trial 1: it is not there; damaged", [&] { next.commit("s", changes); });
  CHECK(next.trials("s").size() == sample_trials().size() - 1);
}

}  // namespace
}  // namespace hfta::storage::testing
