// hfta-tune simulate, from outside: without torch, without data.

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "program.hpp"
#include "study_texts.hpp"

using namespace hfta::testing;

namespace {

// Without what depends on the machine: how long it really took.
std::string simulated_part(const std::string& out) { return out.substr(0, out.find("; computed in")); }

}  // namespace

TEST_CASE("a simulation needs no torch, leaves nothing, and is the same every time") {
  const Workplace place;
  place.write("digits.yaml", kHyperband);
  const Finished first = place.run_with(HFTA_TUNE_BARE, {"simulate", "digits.yaml"});
  INFO(first.err);
  REQUIRE(first.code == 0);
  CHECK_THAT(first.out, Catch::Contains("simulated: ") && Catch::Contains(" on 1 device; computed in"));
  CHECK_THAT(first.out, Catch::Contains("busy until the last trial began"));
  CHECK(simulated_part(place.run_with(HFTA_TUNE_BARE, {"simulate", "digits.yaml"}).out) == simulated_part(first.out));
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
  const Finished finished = place.run_with(HFTA_TUNE_BARE, words);
  INFO(finished.err);
  REQUIRE(finished.code == 0);
  const Finished report = place.run_with(HFTA_TUNE_BARE, {"report", "--storage", "kept.db", "--format", "json"});
  REQUIRE(report.code == 0);
  CHECK(nlohmann::json::parse(report.out)["best"]["value"] == 0.75);
  const Finished again = place.run_with(HFTA_TUNE_BARE, words);
  CHECK(again.code == 2);
  CHECK_THAT(again.err, Catch::Contains("kept.db, wanted a new one"));
}

TEST_CASE("simulated CPUs lend their threads unless the config says no") {
  const Workplace place;
  place.write("digits.yaml", kHyperband);
  const auto simulated = [&](const std::string& devices, const std::string& lend) {
    const Finished finished = place.run_with(
        HFTA_TUNE_BARE, {"simulate", "digits.yaml", "--devices", devices, "--set", "array.lend=" + lend});
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
    const Finished finished = place.run_with(HFTA_TUNE_BARE, words);
    INFO(finished.err);
    const bool fails = *c.says != '\0';
    CHECK(finished.code == (fails ? 2 : 0));
    if (fails) CHECK_THAT(finished.err, Catch::Contains(c.says));
  }
}

TEST_CASE("a simulated budget ends with a report that says so, exit 0") {
  const Workplace place;
  place.write("digits.yaml", with(kHyperband, "run_cap: 17", "budget: {epochs: 2}"));
  const Finished finished = place.run_with(HFTA_TUNE_BARE, {"simulate", "digits.yaml"});
  INFO(finished.err);
  CHECK(finished.code == 0);
  CHECK_THAT(finished.out,
             Catch::Contains("ended by its budget of 2 trial-epochs; ") && Catch::Contains("best so far: "));
}
