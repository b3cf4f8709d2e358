// What a config, an edit of it or an option does to a study: begun, gone on with, refused, planned.

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "comparable.hpp"
#include "program.hpp"
#include "reports.hpp"
#include "study_texts.hpp"

using namespace hfta::testing;
using nlohmann::json;
using Names = std::vector<std::string>;

TEST_CASE("--fresh begins a new study beside the old one") {
  const Workplace place;
  place.write("digits.yaml", kHyperband);
  CHECK(place.run({"digits.yaml", "--fresh"}).code == 0);
  const Finished fresh = place.run({"digits.yaml", "--fresh", "--trials", "9"});
  CHECK(fresh.code == 0);
  CHECK_THAT(fresh.out, Catch::StartsWith("study digits-2:"));
  CHECK(report(place)["trials"].size() == 17);
  CHECK(report(place, "digits-2")["trials"].size() == 9);
  CHECK_THAT(place.run({"digits.yaml", "--fresh"}).out, Catch::StartsWith("study digits-3:"));
}

TEST_CASE("--fresh takes a name of any signs as it is") {
  for (const std::string name : {"run #2", "#first", "%x", "@home", "{}", "[1]", "a: b", "it's \"so\""}) {
    CAPTURE(name);
    const Workplace place;
    const std::string study = nlohmann::json(name).dump();
    place.write("digits.yaml", with(kHyperband, "study: digits", "study: " + study));
    REQUIRE(place.run({"digits.yaml"}).code == 0);
    CHECK_THAT(place.run({"digits.yaml", "--fresh", "--trials", "9"}).out, Catch::StartsWith("study " + name + "-2:"));
    CHECK(report(place, name + "-2")["trials"].size() == 9);
  }
}

TEST_CASE("where no configuration meets the constraints, or there is nothing to begin from, no study is made") {
  const Workplace place;
  place.write("digits.yaml", std::string(kHyperband) + "constraints: ['lr > 1000']\n");
  const Finished impossible = place.run({"digits.yaml"});
  CHECK(impossible.code == 2);
  CHECK_THAT(impossible.err, Catch::Contains("digits.yaml: constraints: found none among"));
  const std::string point = std::string(kHyperband) + "points: [{lr: 0.125}]\nconstraints: ['lr == 0.125']\n";
  place.write("digits.yaml", point);  // what is drawn behind the point does not meet them
  for (const std::vector<std::string>& command : {std::vector<std::string>{"digits.yaml"}, {"plan", "digits.yaml"}}) {
    const Finished alone = place.run(command);
    CHECK(alone.code == 2);
    CHECK_THAT(alone.err, Catch::Contains("digits.yaml: constraints: found none among"));
  }
  const std::string tpe = with(with(kHyperband, "method: hyperband", "method: tpe"),
                               "hyperband: {min_epochs: 1, max_epochs: 9, eta: 3}\n", "");
  place.write("digits.yaml", tpe + "warm_start: {study: old, storage: nowhere.db}\n");
  const Finished absent = place.run({"digits.yaml"});
  CHECK(absent.code == 2);
  CHECK_THAT(absent.err, Catch::Contains("warm_start: storage: found no store "));
  place.write("digits.yaml", kHyperband);
  CHECK(place.run({"digits.yaml"}).code == 0);
}

TEST_CASE("an edited config goes on only where that changes no result") {
  const Workplace place;
  place.write("digits.yaml", kHyperband);
  REQUIRE(place.run({"digits.yaml"}).code == 0);
  struct Case {
    const char *from, *to;
    int code;
    const char* says;
  };
  const Case cases[] = {
      {"width: 4", "width: 2", 0, ""},
      {"run_cap: 17", "run_cap: 26", 0, "going on with study"},
      {"run_cap: 17", "run_cap: 9", 2, "run_cap: found 9, wanted at least"},
      {"seed: 1", "seed: 2", 2, "seed: found 2, the study has 1"},
      {"min: 1.0e-4", "min: 1.0e-3", 2, "parameters.lr.min"},
      {"name: sgd", "name: adam", 2, "train.optimizer.name: found adam, the study has sgd"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.to);
    place.write("digits.yaml", with(kHyperband, c.from, c.to));
    const std::string before = place.read("digits.db");
    const Finished finished = place.run({"digits.yaml"});
    INFO(finished.err);
    CHECK(finished.code == c.code);
    CHECK_THAT(finished.err, Catch::Contains(c.says));
    if (c.code == 2) {
      CHECK(count(finished.err, "\n") == 1);
      CHECK_THAT(finished.err, Catch::Contains("--fresh"));
      CHECK(place.read("digits.db") == before);
    }
  }
  CHECK(report(place)["trials"].size() == 26);
}

TEST_CASE("what auto chose is told, and stays with the study at other widths and under other caps") {
  const Workplace place;
  const std::string unnamed =
      with(kHyperband, "method: hyperband\nhyperband: {min_epochs: 1, max_epochs: 9, eta: 3}\nrun_cap: 17\n",
           "run_cap: 20\n");
  const std::string told = "auto chose method: sobol, because all 20 configurations begin at once";
  place.write("digits.yaml", with(unnamed, "width: 4", "width: 20"));
  CHECK_THAT(place.run({"plan", "digits.yaml"}).out, Catch::Contains(told));
  const Finished first = place.run({"digits.yaml"});
  INFO(first.err);
  REQUIRE(first.code == 0);
  CHECK_THAT(first.err, Catch::Contains(told));
  CHECK_THAT(first.out, Catch::Contains("method: sobol, chosen by auto because all 20 configurations begin at once"));
  CHECK(report(place)["method"] == "sobol");
  place.write("digits.yaml", unnamed);  // four slots: of a new study other than sobol
  CHECK_THAT(place.run({"plan", "digits.yaml", "--set", "study=other"}).out,
             Catch::Contains("auto chose method: ") && !Catch::Contains("sobol"));
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"plan", "digits.yaml"},
        {"digits.yaml", "--trials", "30"},
        {"resume", "digits", "--storage", "digits.db", "--trials", "40", "--width", "3"}}) {
    const Finished more = place.run(words);
    INFO(more.err);
    CHECK(more.code == 0);
    CHECK_THAT(more.out + more.err, Catch::Contains(told));
  }
  CHECK(report(place)["trials"].size() == 40);
}

TEST_CASE("a study that was begun before there was auto goes on with its method") {
  const Workplace place;
  const std::string named =
      with(kHyperband, "method: hyperband\nhyperband: {min_epochs: 1, max_epochs: 9, eta: 3}\nrun_cap: 17\n",
           "method: random\nrun_cap: 15\n");
  place.write("digits.yaml", named);
  REQUIRE(place.run({"digits.yaml"}).code == 0);
  place.write("digits.yaml", with(with(named, "method: random\n", ""), "run_cap: 15", "run_cap: 20"));
  const Finished more = place.run({"digits.yaml"});
  INFO(more.err);
  CHECK(more.code == 0);
  CHECK(report(place)["method"] == "random");
  CHECK(report(place)["trials"].size() == 20);
}

TEST_CASE("what was set on the command line stays with the study") {
  const Workplace place;
  place.write("digits.yaml", kHyperband);
  Program program(place.options({{"HFTA_FAKE_DELAY_MS", "100"}}), {"digits.yaml", "--set", "seed=5", "--trials", "12"});
  REQUIRE(program.wait_for("round 2:"));
  program.signal(SIGINT);
  CHECK(program.wait().code == 130);
  std::filesystem::rename(place.path() / "digits.yaml", place.path() / "elsewhere.yaml");
  const Finished rest = place.run({"resume", "digits", "--storage", "digits.db"});
  INFO(rest.err);
  CHECK(rest.code == 0);
  CHECK(report(place)["trials"].size() == 12);
  const Workplace whole;
  whole.write("digits.yaml", with(kHyperband, "seed: 1", "seed: 5"));
  REQUIRE(whole.run({"digits.yaml", "--trials", "12"}).code == 0);
  CHECK(comparable(report(place)) == comparable(report(whole)));
}

TEST_CASE("resume says that the folder of the config is gone") {
  const Workplace place;
  std::filesystem::create_directory(place.path() / "old");
  place.write("old/digits.yaml", with(kHyperband, "method: hyperband", "method: random"));
  const Finished first = place.run({"old/digits.yaml", "--trials", "4"});
  INFO(first.err);
  REQUIRE(first.code == 0);
  std::filesystem::rename(place.path() / "old", place.path() / "new");
  const Finished more = place.run({"resume", "digits", "--storage", "new/digits.db", "--trials", "6"});
  INFO(more.err);
  CHECK(more.code == 0);
  CHECK_THAT(more.err, Catch::Contains("old', from which study 'digits' was begun, is gone"));
}

TEST_CASE("nothing is created before config, data and device are known to be good") {
  struct Case {
    std::vector<std::string> words;
    std::vector<std::pair<std::string, std::string>> environment;
    int code;
  };
  const Case cases[] = {{{"digits.yaml", "--device", "cuda"}, {}, 4},
                        {{"digits.yaml"}, {{"HFTA_FAKE_BROKEN", "1"}}, 4},
                        {{"digits.yaml"}, {{"HFTA_FAKE_DATA", "1"}}, 2},
                        {{"digits.yaml", "--set", "parameters.lr.min=2"}, {}, 2},
                        {{"digits.yaml", "--device", "cpu", "--set", "array.divide=stages"}, {}, 2},
                        {{"plan", "digits.yaml", "--device", "cuda"}, {}, 4}};
  for (const Case& c : cases) {
    const Workplace place;
    place.write("digits.yaml", kHyperband);
    const Finished finished = place.run(c.words, c.environment);
    INFO(finished.err);
    CHECK(finished.code == c.code);
    CHECK(count(finished.err, "\n") == 1);
    CHECK(finished.out.empty());
    CHECK(place.names() == Names{"digits.yaml"});
  }
}

TEST_CASE("a study whose model file has changed is not gone on with") {
  const Workplace place;
  place.write("digits.yaml", kHyperband);
  using Environment = std::vector<std::pair<std::string, std::string>>;
  const Environment first = {{"HFTA_FAKE_MODEL", "aaaa"}, {"HFTA_FAKE_DELAY_MS", "100"}};
  Program program(place.options(first), {"digits.yaml"});
  REQUIRE(program.wait_for("round 2:"));
  program.signal(SIGINT);
  const Finished stopped = program.wait();
  CHECK(stopped.code == 130);
  CHECK(count(stopped.err, "warning: m.pt2: fake note\n") == 1);
  const json before = comparable(report(place));
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"digits.yaml"}, {"resume", "digits", "--storage", "digits.db"}}) {
    const Finished refused = place.run(words, {{"HFTA_FAKE_MODEL", "bbbb"}});
    CHECK(refused.code == 2);
    CHECK_THAT(refused.err, Catch::Contains("found another m.pt2 (fingerprint bbbb) than study 'digits' was begun "
                                            "with (aaaa); --fresh"));
    CHECK((comparable(report(place)) == before));
  }
  CHECK(place.run({"digits.yaml"}, {{"HFTA_FAKE_MODEL", "aaaa"}}).code == 0);
}

TEST_CASE("a finished study does not answer for files that were changed since") {
  const Workplace place;
  place.write("digits.yaml", kHyperband);
  place.write("m.pt2", "a model");
  const auto run = [&](const char* content) { return place.run({"digits.yaml"}, {{"HFTA_FAKE_MODEL", content}}); };
  REQUIRE(run("aaaa").code == 0);
  const Finished unread = run("bbbb");  // the file lies as it did: it is not read
  CHECK(unread.code == 0);
  CHECK(unread.out == run("aaaa").out);
  place.write("m.pt2", "another model");
  const Finished refused = run("bbbb");
  CHECK(refused.code == 2);
  CHECK_THAT(refused.err, Catch::Contains("found another m.pt2 (fingerprint bbbb)"));
  const Finished same = run("aaaa");  // written anew, with the same content
  CHECK(same.code == 0);
  CHECK(same.out == unread.out);
  CHECK(run("bbbb").code == 0);
  std::filesystem::remove(place.path() / "m.pt2");
  const Finished gone = run("bbbb");
  CHECK(gone.code == 0);
  CHECK(gone.out == unread.out);
  CHECK_THAT(gone.err, Catch::Contains("m.pt2' is gone; study 'digits' was trained with it before"));
}

TEST_CASE("a config that cannot be read is one line, exit 2") {
  using namespace std::string_literals;
  const Workplace place;
  std::filesystem::create_directory(place.path() / "folder.yaml");
  place.write("empty.yaml", "");
  place.write("nul.yaml", "study: a\0b\n"s);
  place.write("aliases.yaml", "a: &a [1, 1]\nb: &b [*a, *a]\nc: [*b, *b]\n");
  place.write("itself.yaml", "a: &a [*a]\n");
  place.write("deep.yaml", std::string(10'000, '['));
  place.write("wide.yaml", std::string(1 << 20, '{'));
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"absent.yaml", "absent.yaml"}, {"folder.yaml", "folder.yaml"}, {"empty.yaml", "empty.yaml"},
      {"nul.yaml", "nul.yaml"},       {"aliases.yaml", "anchors"},    {"itself.yaml", "anchors"},
      {"deep.yaml", "deep.yaml:1"},   {"wide.yaml", "wide.yaml"}};
  const Names before = place.names();
  for (const auto& [file, words] : cases) {
    CAPTURE(file);
    const Finished finished = place.run({file});
    CHECK(finished.code == 2);
    CHECK(count(finished.err, "\n") == 1);
    CHECK_THAT(finished.err, Catch::Contains(words));
    CHECK(finished.seconds < 5);
    CHECK(place.names() == before);
  }
}

TEST_CASE("a store that cannot be used is left alone") {
  const Workplace place;
  place.write("digits.yaml", kHyperband);
  place.write("digits.db", "these are somebody's notes, not a database\n");
  const Finished finished = place.run({"digits.yaml"});
  CHECK(finished.code == 3);
  CHECK(count(finished.err, "\n") == 1);
  CHECK(place.read("digits.db") == "these are somebody's notes, not a database\n");
  CHECK(place.names() == Names{"digits.db", "digits.yaml"});
}

TEST_CASE("plan --measure shows every way to run and what it takes") {
  const Workplace place;
  place.write("digits.yaml", kHyperband);
  const Finished table = place.run({"plan", "digits.yaml", "--measure"});
  CHECK(table.code == 0);
  CHECK_THAT(table.out, Catch::Contains("fake") && Catch::Contains("chosen") && Catch::Contains("2.0000") &&
                            Catch::Contains("not other: no fake") && Catch::Contains("fake: LibTorch runs aten::fake"));
  const json plan = json::parse(place.run({"plan", "digits.yaml", "--measure", "--format", "json"}).out);
  CHECK(plan["partitions"][0]["measured"][0]["samples_per_s"] == 16000);
  CHECK(plan["partitions"][0]["measured"].size() == 2);
  CHECK(plan["partitions"][0]["measured"][0]["note"] == "LibTorch runs aten::fake");
  CHECK_FALSE(plan["partitions"][0]["measured"][1].contains("note"));
  CHECK(plan["partitions"][0]["not_measured"] == json{{"other", "no fake"}});
}

TEST_CASE("plan shows how memory is kept to, where the config speaks of it") {
  const Workplace place;
  place.write("digits.yaml", kHyperband);
  CHECK_THAT(place.run({"plan", "digits.yaml"}).out, !Catch::Contains("memory within"));
  const Finished table = place.run({"plan", "digits.yaml", "--set", "memory.limit=64MiB"});
  for (const char* part : {"memory within 64.0 MiB (policy auto):", "MiB/arena", "fake, leaner",
                           "fake: it fits, and less memory would gain nothing"}) {
    CHECK_THAT(table.out, Catch::Contains(part));
  }
  const json plan = json::parse(place.run({"plan", "digits.yaml", "--format", "json"}).out);
  const json& memory = plan["partitions"][0]["memory"];
  CHECK(memory["limit"] == 64 << 20);
  CHECK(memory["plenty"] == true);
  CHECK(memory["ways"][1] == json{{"lowering", "fake, leaner"},
                                  {"bytes_per_slot", 1 << 20},
                                  {"bytes_per_arena", 2 << 20},
                                  {"shared_bytes", 0},
                                  {"arenas", 1},
                                  {"width", 8},
                                  {"open", false}});
}

TEST_CASE("plan says what would run, and creates nothing") {
  const Workplace place;
  place.write("digits.yaml", kHyperband);
  const Finished table = place.run({"plan", "digits.yaml"});
  INFO(table.err);
  CHECK(table.code == 0);
  for (const char* part : {"trials: 17,", "[9x1 3x3 1x9] [5x3 1x9] [3x9]", "hidden=64", "hidden=128",
                           "log_uniform_values", "shapes: splits trials into arrays", "slots: fused", "layers.0"}) {
    CHECK_THAT(table.out, Catch::Contains(part));
  }
  const Finished machine = place.run({"plan", "digits.yaml", "--format", "json", "--trials", "34"});
  REQUIRE(machine.code == 0);
  const json plan = json::parse(machine.out);
  CHECK(plan["trials"] == 34);
  CHECK(plan["parameters"][0]["fusible"] == true);
  CHECK(plan["parameters"][1]["fusible"] == false);
  int trials = 0;
  for (const json& partition : plan["partitions"]) {
    trials += partition["trials"].get<int>();
    CHECK(partition["width"] == 4);
    CHECK(partition["bytes"] == 4 * partition["bytes_per_slot"].get<long>());
  }
  CHECK(trials == 34);
  CHECK(place.names() == Names{"digits.yaml"});
}
