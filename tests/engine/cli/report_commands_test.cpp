// report and studies, on a real store.

#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "program.hpp"
#include "study_texts.hpp"

using namespace hfta::testing;
using nlohmann::json;
using nlohmann::ordered_json;

namespace {

// One finished study, made once: reading leaves it as it is.
const Workplace& finished_study() {
  static const Workplace place;
  static const bool made = [] {
    place.write("digits.yaml", kHyperband);
    return place.run({"digits.yaml"}).code == 0;
  }();
  REQUIRE(made);
  return place;
}

Finished report(std::vector<std::string> words) {
  words.insert(words.begin(), {"report", "digits", "--storage", "digits.db"});
  return finished_study().run(words);
}

std::vector<std::string> keys(const ordered_json& object) {
  std::vector<std::string> names;
  for (const auto& [key, value] : object.items()) names.push_back(key);
  return names;
}

}  // namespace

TEST_CASE("report --format json is one object of the documented form, alone on standard output") {
  const Finished finished = report({"--format", "json"});
  CHECK(finished.code == 0);
  CHECK(finished.err.empty());
  const ordered_json all = ordered_json::parse(finished.out);
  CHECK(keys(all) == std::vector<std::string>{"study", "metric", "direction", "method", "method_reason", "counts",
                                              "best", "runner", "ended_by", "occupancy", "ways", "trials"});
  CHECK(all["study"] == "digits");
  CHECK(all["metric"] == "val_accuracy");
  CHECK(all["direction"] == "maximize");
  CHECK(all["counts"] == ordered_json({{"COMPLETE", 5}, {"PRUNED", 12}}));
  REQUIRE(all["trials"].size() == 17);
  double best = -1;
  int number = 0;
  for (const ordered_json& trial : all["trials"]) {
    CHECK(keys(trial) ==
          std::vector<std::string>{"number", "state", "value", "params", "epochs", "duration_s", "metrics"});
    CHECK(trial["number"] == number++);
    CHECK(trial["value"] == trial["metrics"]["val_accuracy"]);
    CHECK(trial["metrics"].contains("train_loss"));
    CHECK(trial["params"]["hidden"].is_number_integer());
    CHECK(trial["params"]["lr"].is_number_float());
    CHECK(trial["duration_s"].get<double>() >= 0);
    CHECK_FALSE(trial["metrics"].contains("test_accuracy"));
    if (trial["state"] == "COMPLETE") best = std::max(best, trial["value"].get<double>());
    CHECK((trial["state"] == "COMPLETE") == (trial["epochs"] == 9));
  }
  CHECK(all["best"]["value"] == best);
  CHECK(all["best"]["metrics"].contains("test_accuracy"));
  CHECK(all["best"]["metrics"].contains("val_accuracy"));
}

TEST_CASE("report --top gives the best trials, best first") {
  const json top = json::parse(report({"--format", "json", "--top", "7"}).out);
  REQUIRE(top["trials"].size() == 7);
  CHECK(top["trials"][0]["number"] == top["best"]["number"]);
  CHECK(top["counts"]["PRUNED"] == 12);  // of the whole study
  for (int i = 0; i < 5; ++i) CHECK(top["trials"][static_cast<std::size_t>(i)]["state"] == "COMPLETE");
  for (std::size_t i = 1; i < 5; ++i) CHECK(top["trials"][i - 1]["value"] >= top["trials"][i]["value"]);
  CHECK(top["trials"][5]["state"] == "PRUNED");
  CHECK(json::parse(report({"--format", "json", "--top", "1000"}).out)["trials"].size() == 17);
}

TEST_CASE("report --format csv has a header and one line per trial") {
  const Finished finished = report({"--format", "csv"});
  CHECK(finished.code == 0);
  std::istringstream in(finished.out);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  REQUIRE(lines.size() == 18);
  CHECK(lines[0] ==
        "number,state,value,epochs,duration_s,params.lr,params.hidden,metrics.train_loss,metrics.val_accuracy,"
        "metrics.val_loss,reason\r");
  const auto commas = [](const std::string& line) { return std::count(line.begin(), line.end(), ','); };
  for (const std::string& line : lines) CHECK(commas(line) == commas(lines[0]));
}

TEST_CASE("report's table shows the best ten unless told") {
  const Finished table = report({});
  CHECK(table.code == 0);
  CHECK_THAT(table.out, Catch::Contains("trials: 17 (5 COMPLETE, 12 PRUNED)") && Catch::Contains("(7 more;") &&
                            Catch::Contains("test_accuracy"));
  CHECK(report({"--format", "events", "--top", "7"}).code == 2);
  CHECK_THAT(report({"--top", "17"}).out, !Catch::Contains("more;"));
}

TEST_CASE("the study need not be named where there is one") {
  const Workplace& place = finished_study();
  const Finished named = report({"--format", "json"});
  CHECK(place.run({"report", "--storage", "sqlite:///digits.db", "--format", "json"}).out == named.out);
  const Finished wrong = place.run({"report", "digit", "--storage", "digits.db"});
  CHECK(wrong.code == 2);
  CHECK_THAT(wrong.err, Catch::Contains("found 'digit'") && Catch::Contains("did you mean 'digits'?"));
  const Workplace two;
  two.write("digits.yaml", kHyperband);
  CHECK(two.run({"digits.yaml"}).code == 0);
  CHECK(two.run({"digits.yaml", "--fresh"}).code == 0);
  const Finished which = two.run({"report", "--storage", "digits.db"});
  CHECK(which.code == 2);
  CHECK_THAT(which.err, Catch::Contains("digits, digits-2"));
  const json studies = json::parse(two.run({"studies", "--storage", "digits.db", "--format", "json"}).out);
  REQUIRE(studies.size() == 2);
  CHECK(studies[1]["study"] == "digits-2");
  CHECK(studies[1]["counts"]["COMPLETE"] == 5);
  CHECK(studies[1]["best"].is_number());
  const Finished table = two.run({"studies", "--storage", "digits.db"});
  CHECK_THAT(table.out, Catch::Contains("digits-2") && Catch::Contains("maximize val_accuracy"));
}

TEST_CASE("report --output writes a file, or says why not") {
  const Workplace& place = finished_study();
  const Finished written = report({"--format", "json", "--output", "out.json"});
  CHECK(written.code == 0);
  CHECK(written.out.empty());
  CHECK(place.read("out.json") == report({"--format", "json"}).out);
  const Finished refused = report({"--output", "/proc/nowhere/out"});
  CHECK(refused.code == 2);
  CHECK_THAT(refused.err, Catch::Contains("found no folder /proc/nowhere"));
  CHECK(report({"--output", "/proc/uptime"}).code == 3);
}

TEST_CASE("no output replaces a store") {
  const Workplace& place = finished_study();
  std::filesystem::copy_file(place.path() / "digits.db", place.path() / "copy.json");
  std::filesystem::create_symlink("digits.db", place.path() / "link.txt");
  const std::string before = place.read("digits.db");
  for (const Finished& refused :
       {report({"--output", "digits.db"}), report({"--output", "link.txt"}), report({"--timeline", "copy.json"}),
        place.run({"export", "digits", "--storage", "digits.db", "--output", "digits.db"})}) {
    CHECK(refused.code == 2);
    CHECK_THAT(refused.err, Catch::Contains("found an SQLite database there"));
  }
  CHECK(place.read("digits.db") == before);
  CHECK(place.read("copy.json") == before);
}

TEST_CASE("standard output that takes nothing is an error") {
  Program::Options options = finished_study().options();
  options.standard_output = "/dev/full";
  const Finished finished = Program(options, {"report", "digits", "--storage", "digits.db"}).wait();
  CHECK(finished.code == 3);
  CHECK_THAT(finished.err, Catch::Contains("standard output: cannot write"));
}

TEST_CASE("reading a store that is not there, or is none, is an error and creates nothing") {
  const Workplace place;
  place.write("notes.txt",
              "not a database, and long enough to be looked at for longer than a header of sixteen bytes\n");
  for (const char* command : {"report", "studies"}) {
    for (const char* store : {"absent.db", "notes.txt", "."}) {
      const Finished finished = place.run({command, "--storage", store});
      INFO(finished.err);
      CHECK(finished.code == 3);
      CHECK(finished.out.empty());
      CHECK(std::count(finished.err.begin(), finished.err.end(), '\n') == 1);
      CHECK_THAT(finished.err, Catch::Contains(store));
    }
  }
  CHECK(place.names() == std::vector<std::string>{"notes.txt"});
}

TEST_CASE("export writes the best trial's weights, or those of another that is kept") {
  const Workplace& place = finished_study();
  const Finished best = place.run({"export", "--storage", "digits.db", "--output", "best.safetensors"});
  INFO(best.err);
  CHECK(best.code == 0);
  CHECK(best.out.empty());
  const std::string bytes = place.read("best.safetensors");
  REQUIRE(bytes.size() > 8);
  const std::size_t length = static_cast<unsigned char>(bytes[0]) + 256U * static_cast<unsigned char>(bytes[1]);
  const json header = json::parse(bytes.substr(8, length));
  CHECK(header.contains("weight"));
  CHECK(header.size() == 2);  // with its metadata: nothing of the optimizer
  const json all = json::parse(report({"--format", "json"}).out);
  CHECK(header["__metadata__"]["trial"] == std::to_string(all["best"]["number"].get<int>()));
  CHECK(header["__metadata__"]["format"] == "pt");

  for (const json& trial : all["trials"]) {
    const std::string number = std::to_string(trial["number"].get<int>());
    const Finished one =
        place.run({"export", "digits", "--storage", "digits.db", "--output", "one.safetensors", "--trial", number});
    INFO(one.err);
    const bool complete = trial["state"] == "COMPLETE";
    CHECK(one.code == (complete ? 0 : 2));
    if (!complete) CHECK_THAT(one.err, Catch::Contains("trial " + number + " (PRUNED)") && Catch::Contains("kept are"));
  }
  CHECK((place.read("best.safetensors") == bytes));
  const Finished nowhere =
      place.run({"export", "digits", "--storage", "digits.db", "--output", "no/such/folder/b.safetensors"});
  CHECK(nowhere.code == 2);
  CHECK_THAT(nowhere.err, Catch::Contains("found no folder no/such/folder"));
  CHECK(place.run({"export", "digit", "--storage", "digits.db", "--output", "b"}).code == 2);
}

TEST_CASE("report --timeline writes a picture or a trace beside the report") {
  const Workplace& place = finished_study();
  const Finished svg = report({"--timeline", "t.svg", "--format", "json"});
  INFO(svg.err);
  CHECK(svg.code == 0);
  CHECK(json::parse(svg.out)["study"] == "digits");
  CHECK_THAT(place.read("t.svg"), Catch::StartsWith("<svg") && Catch::Contains("busy slots"));
  CHECK(report({"--timeline", "t.json"}).code == 0);
  CHECK(json::parse(place.read("t.json"))["traceEvents"].size() > 9);
  const Finished other = report({"--timeline", "t.png"});
  CHECK(other.code == 2);
  CHECK_THAT(other.err, Catch::Contains("--timeline: found 't.png', wanted a file .svg or .json"));
}
