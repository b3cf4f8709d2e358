// hfta-tune simulate, from outside: without torch, without data.

#include <sqlite3.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "program.hpp"
#include "study_texts.hpp"

using namespace hfta::testing;

namespace {

// Without what depends on the machine: how long it really took.
std::string simulated_part(const std::string& out) { return out.substr(0, out.find("; computed in")); }

Finished run_bare(const Workplace& place, std::vector<std::string> words) {
  Program::Options options = place.options();
  options.program = HFTA_TUNE_BARE;
  return Program(options, std::move(words)).wait();
}

// As other programs leave trials: with a value, and none by epoch. The first three trials keep theirs.
void forget_epochs(const std::filesystem::path& store) {
  sqlite3* database = nullptr;
  REQUIRE(sqlite3_open(store.c_str(), &database) == SQLITE_OK);
  CHECK(sqlite3_exec(database,
                     "DELETE FROM hfta_trials WHERE trial_id > 3;"
                     "DELETE FROM hfta_epoch_metrics WHERE trial_id > 3;"
                     "DELETE FROM trial_intermediate_values WHERE trial_id > 3",
                     nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(database);
}

}  // namespace

TEST_CASE("a simulation needs no torch, leaves nothing, and is the same every time") {
  const Workplace place;
  place.write("digits.yaml", kHyperband);
  const Finished first = run_bare(place, {"simulate", "digits.yaml"});
  INFO(first.err);
  REQUIRE(first.code == 0);
  CHECK_THAT(first.out, Catch::Contains("simulated: ") && Catch::Contains(" on 1 device; computed in"));
  CHECK_THAT(first.out, Catch::Contains("busy until the last trial began"));
  CHECK(simulated_part(run_bare(place, {"simulate", "digits.yaml"}).out) == simulated_part(first.out));
  CHECK(place.names() == std::vector<std::string>{"digits.yaml"});
}

TEST_CASE("a simulation keeps its store where it is asked to, and takes recorded curves") {
  const Workplace place;
  place.write("digits.yaml", kHyperband);
  std::string curves = "trial,epoch,val_accuracy\n";
  for (int epoch = 1; epoch <= 9; ++epoch) curves += "0," + std::to_string(epoch) + ",0.5\n";
  for (int epoch = 1; epoch <= 9; ++epoch) curves += "1," + std::to_string(epoch) + ",0.75\n";
  place.write("curves.csv", curves);
  const std::vector<std::string> words = {"simulate", "digits.yaml", "--curves",  "curves.csv",
                                          "--keep",   "kept.db",     "--devices", "3"};
  const Finished finished = run_bare(place, words);
  INFO(finished.err);
  REQUIRE(finished.code == 0);
  const Finished report = run_bare(place, {"report", "--storage", "kept.db", "--format", "json"});
  REQUIRE(report.code == 0);
  CHECK(nlohmann::json::parse(report.out)["best"]["value"] == 0.75);
  const Finished again = run_bare(place, words);
  CHECK(again.code == 2);
  CHECK_THAT(again.err, Catch::Contains("kept.db, wanted a new one"));
}

TEST_CASE("simulated CPUs lend their threads unless the config says no") {
  const Workplace place;
  place.write("digits.yaml", kHyperband);
  const auto simulated = [&](const std::string& devices, const std::string& lend) {
    const Finished finished =
        run_bare(place, {"simulate", "digits.yaml", "--devices", devices, "--set", "array.lend=" + lend});
    INFO(finished.err);
    REQUIRE(finished.code == 0);
    return simulated_part(finished.out);
  };
  CHECK(simulated("cpu:1,cpu:1", "true") != simulated("cpu:1,cpu:1", "false"));
  CHECK(simulated("1,1", "true") == simulated("1,1", "false"));
}

TEST_CASE("what a simulation cannot use is one line, exit 2") {
  struct Case {
    std::vector<std::string> words;
    const char* says;
  };
  const Case cases[] = {{{"--curves", "absent.csv"}, "absent.csv: cannot be read"},
                        {{"--curves", "digits.yaml"}, "found no column 'trial'"},
                        {{"--devices", "0"}, "--devices: found 0, wanted 1 to 1024"},
                        {{"--devices", "1,x"}, "--devices: found 1,x, wanted 1 to 1024, or the speeds"},
                        {{"--devices", "cpu:0"}, "--devices: found cpu:0, wanted 1 to 1024, or the speeds"},
                        {{"--devices", "cpu:1"}, ""},
                        {{"--device", "cpu"}, ""}};
  for (const Case& c : cases) {
    const Workplace place;
    place.write("digits.yaml", kHyperband);
    std::vector<std::string> words = {"simulate", "digits.yaml"};
    words.insert(words.end(), c.words.begin(), c.words.end());
    const Finished finished = run_bare(place, words);
    INFO(finished.err);
    const bool fails = *c.says != '\0';
    CHECK(finished.code == (fails ? 2 : 0));
    if (fails) CHECK_THAT(finished.err, Catch::Contains(c.says));
  }
}

TEST_CASE("a simulated study begins with the trials of an earlier one that are of its space") {
  const Workplace place;
  place.write("digits.yaml", kHyperband);
  REQUIRE(run_bare(place, {"simulate", "digits.yaml", "--keep", "kept.db"}).code == 0);
  const std::string next = with(with(kHyperband, "study: digits", "study: next"), "method: hyperband", "method: tpe");
  const std::string from = "seed: 2\nwarm_start: {study: digits, storage: kept.db}";
  place.write("next.yaml", with(next, "seed: 1", from));
  const Finished warm = run_bare(place, {"simulate", "next.yaml"});
  INFO(warm.err);
  REQUIRE(warm.code == 0);
  CHECK_THAT(warm.err, Catch::Contains("warm start: 17 of 17 ended trials of study 'digits' are of this space"));
  place.write("cold.yaml", with(next, "seed: 1", "seed: 2"));
  CHECK(simulated_part(run_bare(place, {"simulate", "cold.yaml"}).out) != simulated_part(warm.out));
  place.write("narrow.yaml", with(with(next, "seed: 1", from), "values: [64, 128]", "values: [64]"));
  CHECK_THAT(run_bare(place, {"simulate", "narrow.yaml"}).err,
             Catch::Contains(" of 17 ended trials of study 'digits' are of this space; ") &&
                 Catch::Contains(" a value of hidden that this"));
  const std::string decays = with(next, R"(lr: "${lr}")", R"(lr: "${lr}", weight_decay: "${more}")");
  place.write("wide.yaml",
              with(with(decays, "seed: 1", from), "parameters:", "parameters:\n  more: {min: 0.0, max: 1.0}"));
  CHECK_THAT(run_bare(place, {"simulate", "wide.yaml"}).err,
             Catch::Contains(
                 "warning: warm start: 0 of 17 ended trials of study 'digits' are of this space; 17 have no more"));
  forget_epochs(place.path() / "kept.db");
  for (const char* method : {"bohb", "dehb", "freeze_thaw"}) {
    INFO(method);
    place.write("curves.yaml", with(with(next, "seed: 1", from), "method: tpe", std::string("method: ") + method));
    CHECK_THAT(run_bare(place, {"simulate", "curves.yaml"}).err,
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
    const Finished wrong = run_bare(place, {"simulate", "wrong.yaml"});
    CHECK(wrong.code == 2);
    CHECK_THAT(wrong.err, Catch::Contains(c.says));
  }
}

TEST_CASE("a simulated budget ends with a report that says so, exit 0") {
  const Workplace place;
  place.write("digits.yaml", with(kHyperband, "run_cap: 17", "budget: {epochs: 2}"));
  const Finished finished = run_bare(place, {"simulate", "digits.yaml"});
  INFO(finished.err);
  CHECK(finished.code == 0);
  CHECK_THAT(finished.out,
             Catch::Contains("ended by its budget of 2 trial-epochs; ") && Catch::Contains("best so far: "));
}
