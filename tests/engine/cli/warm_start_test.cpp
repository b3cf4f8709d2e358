// Studies that begin with the trials of an earlier one: what is learnt of these, and what is said of them.

#include <sqlite3.h>

#include <catch2/catch.hpp>

#include "program.hpp"
#include "study_texts.hpp"

using namespace hfta::testing;

namespace {

// Changes kept.db as another program would.
void change(const Workplace& place, const char* statements) {
  sqlite3* database = nullptr;
  REQUIRE(sqlite3_open((place.path() / "kept.db").c_str(), &database) == SQLITE_OK);
  CHECK(sqlite3_exec(database, statements, nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(database);
}

// As other programs leave trials: with a value, and none by epoch. The first three trials keep theirs.
constexpr const char* kForgetEpochs =
    "DELETE FROM hfta_trials WHERE trial_id > 3;"
    "DELETE FROM hfta_epoch_metrics WHERE trial_id > 3;"
    "DELETE FROM trial_intermediate_values WHERE trial_id > 3";

// As Optuna's programs leave them: constraints that trials with a rate above 0.01 do not meet.
constexpr const char* kHighRatesAreInfeasible =
    "INSERT INTO trial_system_attributes (trial_id, \"key\", value_json)"
    " SELECT trial_id, 'constraints', CASE WHEN param_value > 0.01 THEN '[1.0]' ELSE '[-1.0]' END"
    " FROM trial_params WHERE param_name = 'lr'";

// Simulated to the end in a new store: the rates that were drawn, those above 0.01, and what was said.
struct Warm {
  int drawn = 0, high = 0;
  std::string said;
};

Warm warm(const Workplace& place, const std::string& config) {
  place.write("next.yaml", config);
  const Finished finished = place.run_with(HFTA_TUNE_BARE, {"simulate", "next.yaml", "--keep", "next.db"});
  INFO(finished.err);
  REQUIRE(finished.code == 0);
  Warm found{0, 0, finished.err};
  sqlite3* database = nullptr;
  REQUIRE(sqlite3_open((place.path() / "next.db").c_str(), &database) == SQLITE_OK);
  const auto count = [](void* to, int, char** cells, char**) {
    ++static_cast<Warm*>(to)->drawn;
    static_cast<Warm*>(to)->high += std::stod(cells[0]) > 0.01 ? 1 : 0;
    return 0;
  };
  sqlite3_exec(database, "SELECT param_value FROM trial_params WHERE param_name = 'lr'", count, &found, nullptr);
  sqlite3_close(database);
  std::filesystem::remove(place.path() / "next.db");
  std::filesystem::remove_all(place.path() / "next.db.hfta");
  return found;
}

const std::string kRandom = with(with(kHyperband, "method: hyperband", "method: random"), "run_cap: 17", "run_cap: 40");
const std::string kNext = with(with(kRandom, "study: digits", "study: next"), "method: random", "method: tpe");
const std::string kFrom = "seed: 2\nwarm_start: {study: digits, storage: kept.db}";

}  // namespace

TEST_CASE("a simulated study begins with the trials of an earlier one that are of its space") {
  const Workplace place;
  place.write("digits.yaml", kHyperband);
  REQUIRE(place.run_with(HFTA_TUNE_BARE, {"simulate", "digits.yaml", "--keep", "kept.db"}).code == 0);
  const std::string next = with(with(kHyperband, "study: digits", "study: next"), "method: hyperband", "method: tpe");
  const std::string from = "seed: 2\nwarm_start: {study: digits, storage: kept.db}";
  place.write("next.yaml", with(next, "seed: 1", from));
  const Finished begun = place.run_with(HFTA_TUNE_BARE, {"simulate", "next.yaml"});
  INFO(begun.err);
  REQUIRE(begun.code == 0);
  CHECK_THAT(begun.err, Catch::Contains("warm start: 17 of 17 ended trials of study 'digits' are of this space"));
  const auto table = [](const std::string& out) { return out.substr(0, out.find("; computed in")); };
  place.write("cold.yaml", with(next, "seed: 1", "seed: 2"));
  CHECK(table(place.run_with(HFTA_TUNE_BARE, {"simulate", "cold.yaml"}).out) != table(begun.out));
  place.write("narrow.yaml", with(with(next, "seed: 1", from), "values: [64, 128]", "values: [64]"));
  CHECK_THAT(place.run_with(HFTA_TUNE_BARE, {"simulate", "narrow.yaml"}).err,
             Catch::Contains(" of 17 ended trials of study 'digits' are of this space; ") &&
                 Catch::Contains(" a value of hidden that this"));
  const std::string decays = with(next, R"(lr: "${lr}")", R"(lr: "${lr}", weight_decay: "${more}")");
  place.write("wide.yaml",
              with(with(decays, "seed: 1", from), "parameters:", "parameters:\n  more: {min: 0.0, max: 1.0}"));
  CHECK_THAT(place.run_with(HFTA_TUNE_BARE, {"simulate", "wide.yaml"}).err,
             Catch::Contains(
                 "warning: warm start: 0 of 17 ended trials of study 'digits' are of this space; 17 have no more"));
  change(place, kForgetEpochs);
  for (const char* method : {"bohb", "dehb", "freeze_thaw"}) {
    INFO(method);
    place.write("curves.yaml", with(with(next, "seed: 1", from), "method: tpe", std::string("method: ") + method));
    CHECK_THAT(place.run_with(HFTA_TUNE_BARE, {"simulate", "curves.yaml"}).err,
               Catch::Contains("14 of these have no values by epoch; " + std::string(method) + " learns nothing"));
  }
  struct Case {
    const char *from, *to, *says;
  };
  const Case cases[] = {{"study: digits,", "study: digit,", "found no study 'digit' in"},
                        {"kept.db}", "lost.db}", "found no store"},
                        {"goal: maximize", "goal: minimize", "found a study of another metric or goal"}};
  for (const Case& c : cases) {
    place.write("wrong.yaml", with(with(next, "seed: 1", from), c.from, c.to));
    const Finished wrong = place.run_with(HFTA_TUNE_BARE, {"simulate", "wrong.yaml"});
    CHECK(wrong.code == 2);
    CHECK_THAT(wrong.err, Catch::Contains(c.says));
  }
}

TEST_CASE("trials that do not meet Optuna's constraints say where to keep away") {
  const Workplace place;
  place.write("digits.yaml", kRandom);
  REQUIRE(place.run_with(HFTA_TUNE_BARE, {"simulate", "digits.yaml", "--keep", "kept.db"}).code == 0);
  const Warm before = warm(place, with(kNext, "seed: 1", kFrom));
  change(place, kHighRatesAreInfeasible);
  const Warm after = warm(place, with(kNext, "seed: 1", kFrom));
  REQUIRE((before.drawn == 40 && after.drawn == 40));
  CHECK(before.high > 10);  // the good rates of the simulation
  CHECK(after.high < before.high / 2);
}

TEST_CASE("what a study's own constraints exclude, and another metric, are left out of what it begins with") {
  const Workplace place;
  place.write("digits.yaml", kRandom);
  REQUIRE(place.run_with(HFTA_TUNE_BARE, {"simulate", "digits.yaml", "--keep", "kept.db"}).code == 0);
  const std::string next = with(kNext, "seed: 1", kFrom);
  CHECK_THAT(warm(place, next + "constraints: [\"lr * 100 < 1\"]\n").said,
             Catch::Contains("have values that the constraint 'lr * 100 < 1' excludes"));
  for (const auto& [name, code] : {std::pair("value", 0), std::pair("value_1", 2), std::pair("value_of_it", 2)}) {
    INFO(name);
    const std::string named =
        "DELETE FROM hfta_studies; DELETE FROM hfta_trials; DELETE FROM hfta_epoch_metrics;"  // as Optuna's programs
                                                                                              // leave a study
        "UPDATE study_system_attributes SET value_json = '[\"" +
        std::string(name) + "\"]' WHERE \"key\" = 'study:metric_names'";
    change(place, named.c_str());
    place.write("next.yaml", next);
    const Finished finished = place.run_with(HFTA_TUNE_BARE, {"simulate", "next.yaml"});
    INFO(finished.err);
    CHECK(finished.code == code);
  }
}

TEST_CASE("of a study with repetitions a learner sees the configurations") {
  const Workplace place;
  place.write("digits.yaml", kRandom + "repeat: 4\n");
  REQUIRE(place.run_with(HFTA_TUNE_BARE, {"simulate", "digits.yaml", "--keep", "kept.db"}).code == 0);
  CHECK_THAT(warm(place, with(kNext, "seed: 1", kFrom)).said,
             Catch::Contains("warm start: 40 of 40 ended configurations of study 'digits' are of this space"));
}
