// Runs: finished, stopped, gone on with, refused.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/files.hpp"
#include "comparable.hpp"
#include "program.hpp"
#include "storage/checkpoints.hpp"
#include "storage/sqlite/sqlite_store.hpp"
#include "study_texts.hpp"

using namespace hfta::testing;
using nlohmann::json;
using Names = std::vector<std::string>;

namespace {

long count(const std::string& text, const std::string& part) {
  long n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

json report(const Workplace& place, const std::string& study = "digits") {
  const Finished finished = place.run({"report", study, "--storage", "digits.db", "--format", "json"});
  REQUIRE(finished.code == 0);
  return json::parse(finished.out);
}

// All files beside the store; the names of states hold their checksums.
std::vector<std::string> state_files(const Workplace& place) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(place.path() / "digits.db.hfta")) {
    if (entry.is_regular_file()) found.push_back(std::filesystem::relative(entry.path(), place.path()).string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

// The same command while `hung` is stopped. One of its threads may have been stopped with the store's lock in its
// hands, which the kernel keeps for it: then it is let go on for a moment.
Finished run_beside(const Workplace& place, Program& hung) {
  for (int tries = 0;; ++tries) {
    Finished finished = place.run({"digits.yaml"});
    if (finished.code != 3 || count(finished.err, "locked by another program") == 0 || tries == 20) return finished;
    hung.signal(SIGCONT);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    hung.signal(SIGSTOP);
    REQUIRE(hung.wait_stopped());
  }
}

}  // namespace

TEST_CASE("a study runs to its end: report on standard output, progress on standard error") {
  const Workplace place;
  place.write("digits.yaml", kHyperband);
  const Finished finished = place.run({"digits.yaml"});
  INFO(finished.err);
  REQUIRE(finished.code == 0);
  CHECK_THAT(finished.out, Catch::StartsWith("study digits: maximize val_accuracy\n") &&
                               Catch::Contains("5 COMPLETE, 12 PRUNED") && Catch::Contains("best: val_accuracy") &&
                               Catch::Contains("test_accuracy"));
  CHECK_THAT(finished.err, Catch::Contains("running study 'digits' on fake"));
  CHECK(count(finished.err, "hfta-tune: ") == 1);
  CHECK(count(finished.err, "round ") > 9);  // one line each
  CHECK(count(finished.err, "\n") == 1 + count(finished.err, "round "));
  CHECK_THAT(finished.err, Catch::Contains("17/17 done (5 complete, 12 pruned, 0 failed)"));
  CHECK(finished.err.find('\x1b') == std::string::npos);
  CHECK(place.names() == Names{"digits.db", "digits.db.hfta", "digits.yaml"});
}

TEST_CASE("a finished study prints its report again, and needs neither module nor device") {
  const Workplace place;
  place.write("digits.yaml", kHyperband);
  const Finished first = place.run({"digits.yaml"});
  const std::string store = place.read("digits.db");
  const Finished again = place.run({"digits.yaml"}, {{"HFTA_FAKE_BROKEN", "1"}});
  CHECK(again.code == 0);
  CHECK(again.out == first.out);
  CHECK(again.err.empty());
  CHECK(place.read("digits.db") == store);
}

TEST_CASE("--json tells a study in events, and what a stopped run told is not told again") {
  const Workplace place;
  place.write("digits.yaml", kHyperband);
  std::vector<json> events;
  const auto take = [&](const std::string& out) {
    for (std::size_t at = 0; at < out.size();) {
      const std::size_t end = out.find('\n', at);
      REQUIRE(end != std::string::npos);
      events.push_back(json::parse(out.substr(at, end - at)));
      at = end + 1;
    }
  };
  Program program(place.options({{"HFTA_FAKE_DELAY_MS", "20"}}), {"digits.yaml", "--json"});
  REQUIRE(program.wait_for("round 5"));
  program.signal(SIGTERM);
  take(program.wait().out);
  CHECK(events.front().at("event") == "run_started");
  CHECK(events.front().at("resumed") == false);
  CHECK(events.back() == json({{"event", "run_ended"}, {"finished", false}, {"best", events.back().at("best")}}));
  const std::size_t half = events.size();
  take(place.run({"resume", "digits", "--storage", "digits.db", "--json"}).out);
  CHECK(events[half].at("resumed") == true);
  CHECK(events.back().at("finished") == true);
  const json told = report(place);
  CHECK(events.back().at("best").at("value") == told.at("best").at("value"));
  std::set<std::pair<int, int>> epochs;
  std::size_t ended = 0;
  for (const json& event : events) {
    if (event.at("event") == "epoch_ended") CHECK(epochs.emplace(event.at("trial"), event.at("epoch")).second);
    ended += event.at("event") == "trial_ended" ? 1 : 0;
  }
  CHECK(ended == told.at("trials").size());
}

TEST_CASE("if no trial is complete the exit code is 1") {
  const Workplace place;
  place.write("digits.yaml", kHyperband);
  for (const char* attempt : {"first", "again"}) {
    INFO(attempt);
    const Finished finished = place.run({"digits.yaml"}, {{"HFTA_FAKE_DIVERGE", "1"}});
    CHECK(finished.code == 1);
    CHECK_THAT(finished.err, Catch::Contains("no trial is COMPLETE; trial 0: train_loss is nan at epoch 1"));
    CHECK_THAT(finished.out, Catch::Contains("17 FAIL") && Catch::Contains("best: none"));
  }
  CHECK(report(place)["best"].is_null());
}

TEST_CASE("a signal stops after the round, and the study goes on to the same end") {
  const Workplace whole;
  whole.write("digits.yaml", kHyperband);
  REQUIRE(whole.run({"digits.yaml"}).code == 0);
  const json expected = comparable(report(whole));
  for (const int signal : {SIGINT, SIGTERM}) {
    const bool by_resume = signal == SIGTERM;
    CAPTURE(signal);
    const Workplace place;
    place.write("digits.yaml", kHyperband);
    Program program(place.options({{"HFTA_FAKE_DELAY_MS", "20"}}), {"digits.yaml"});
    REQUIRE(program.wait_for("round 5"));
    program.signal(signal);
    const Finished stopped = program.wait();
    CHECK(stopped.code == 128 + signal);
    CHECK_THAT(stopped.err,
               Catch::Contains("stopped after") && Catch::Contains("hfta-tune resume 'digits' --storage '"));
    CHECK(stopped.out.empty());
    const json half = report(place);
    CHECK(half["counts"].value("RUNNING", 0) > 0);
    const Finished rest =
        by_resume ? place.run({"resume", "digits", "--storage", "sqlite:///digits.db"}) : place.run({"digits.yaml"});
    INFO(rest.err);
    CHECK(rest.code == 0);
    CHECK_THAT(rest.err, Catch::Contains("going on with study 'digits'"));
    CHECK(comparable(report(place)) == expected);
  }
}

TEST_CASE("what a run left that was killed behind the study's last round is removed by the next one") {
  const Workplace place;
  place.write("digits.yaml", kHyperband);
  REQUIRE(place.run({"digits.yaml"}).code == 0);
  const json expected = comparable(report(place));
  const std::vector<std::string> files = state_files(place);
  const std::filesystem::path folder = place.path() / "digits.db.hfta/digits";
  const auto token =
      hfta::storage::SqliteStore::open(place.path() / "digits.db", hfta::storage::SqliteStore::Mode::kReadOnly)
          .lease("digits")
          ->token;
  const std::string holder = "digits.db.hfta/digits/lease." + token;
  place.write(holder, "process 1 on host nowhere\n");  // nobody holds its lock
  hfta::SystemFiles disk;
  hfta::storage::Checkpoints(disk, folder / "running").save(3, 1, std::vector<std::byte>(10));
  CHECK(state_files(place).size() == files.size() + 2);
  SECTION("nobody has the study") {
    CHECK(place.run({"digits.yaml"}).code == 0);
    CHECK(state_files(place) == files);
  }
  SECTION("nothing can be written there") {
    if (::geteuid() == 0) return;  // to whom everything can
    std::filesystem::permissions(folder, std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
    CHECK(place.run({"digits.yaml"}).code == 0);
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all);
  }
  CHECK(comparable(report(place)) == expected);
}

TEST_CASE("weights that a run could not remove before it failed are removed by the next one") {
  const Workplace place;
  place.write("digits.yaml", kHyperband);
  REQUIRE(place.run({"digits.yaml"}).code == 0);
  const std::vector<std::string> files = state_files(place);
  const std::filesystem::path folder = place.path() / "digits.db.hfta/digits";
  hfta::SystemFiles disk;
  const char* left = GENERATE("running", "finished");
  for (int trial = 0; trial < 20; ++trial) {
    if (std::any_of(files.begin(), files.end(), [&](const std::string& file) {
          return file.find(fmt::format("finished/trial-{}.", trial)) != std::string::npos;
        })) {
      continue;
    }
    hfta::storage::Checkpoints(disk, folder / left).save(trial, 1, std::vector<std::byte>(10));
  }
  CHECK(state_files(place).size() > files.size());
  CHECK(place.run({"digits.yaml"}).code == 0);
  CHECK(state_files(place) == files);
}

TEST_CASE("a killed run goes on to the same end") {
  const Workplace whole;
  whole.write("digits.yaml", kHyperband);
  REQUIRE(whole.run({"digits.yaml"}).code == 0);
  const json expected = comparable(report(whole));
  for (const char* at : {"round 1:", "round 3:", "round 12:"}) {
    CAPTURE(at);
    const Workplace place;
    place.write("digits.yaml", kHyperband);
    Program program(place.options({{"HFTA_FAKE_DELAY_MS", "10"}}), {"digits.yaml"});
    REQUIRE(program.wait_for(at));
    program.signal(SIGKILL);
    CHECK(program.wait().code == 128 + SIGKILL);
    const Finished rest = place.run({"digits.yaml", "--width", "3", "--device", "all"});
    INFO(rest.err);
    CHECK(rest.code == 0);
    CHECK(comparable(report(place)) == expected);
  }
}

TEST_CASE("devices that are named one by one are told apart, and decide no result") {
  const Workplace one;
  one.write("digits.yaml", kHyperband);
  REQUIRE(one.run({"digits.yaml", "--device", "cpu"}).code == 0);
  // What is listed, and what the trainers are called: "cpu:1" is a device of one thread.
  const std::pair<const char*, const char*> cases[] = {{"cpu,cpu", " on fake:0, fake:1,"},
                                                       {"cpu,cpu,cpu:1", " on fake:0, fake:2, fake:1,"},
                                                       {"cpu:1,cpu:1", " on fake:1:0, fake:1:1,"},
                                                       {"cpu:1,cpu:3", " on fake:1, fake:3,"}};
  for (const auto& [devices, told] : cases) {
    const Workplace several;
    several.write("digits.yaml", kHyperband);
    const Finished finished = several.run({"digits.yaml", "--device", devices});
    INFO(finished.err);
    CHECK(finished.code == 0);
    CHECK_THAT(finished.err, Catch::Contains(told));
    CHECK(comparable(report(several)) == comparable(report(one)));
  }
}

TEST_CASE("a hang-up and Slurm's warning save the study as a stop does, however often they come") {
  const Workplace whole;
  whole.write("digits.yaml", kHyperband);
  REQUIRE(whole.run({"digits.yaml"}).code == 0);
  const json expected = comparable(report(whole));
  for (const int signal : {SIGHUP, SIGUSR1}) {
    CAPTURE(signal);
    const Workplace place;
    place.write("digits.yaml", kHyperband);
    Program program(place.options({{"HFTA_FAKE_DELAY_MS", "100"}}), {"digits.yaml"});
    REQUIRE(program.wait_for("round 3:"));
    program.signal(signal);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    program.signal(signal);
    const Finished stopped = program.wait();
    CHECK(stopped.code == 128 + signal);
    CHECK_THAT(stopped.err, Catch::Contains("stopped after"));
    CHECK(place.run({"digits.yaml"}).code == 0);
    CHECK(comparable(report(place)) == expected);
  }
}

TEST_CASE("an epoch that takes long shows signs of life within two seconds") {
  const Workplace place;
  place.write("digits.yaml", kHyperband);
  Program program(place.options({{"HFTA_FAKE_DELAY_MS", "60000"}}), {"digits.yaml"});
  REQUIRE(program.wait_for("in an epoch on fake for "));
  program.signal(SIGKILL);
  CHECK(program.wait().seconds < 10);  // two, and what a busy machine takes to begin
}

TEST_CASE("a run goes on without its streams: a reader that leaves, no input, no terminal") {
  for (const char* streams :
       {"2>&1 >/dev/null | head -n 1", ">/dev/null 2>&1 <&-", ">&- 2>&- <&-", ">/dev/full 2>/dev/full"}) {
    CAPTURE(streams);
    const Workplace place;
    place.write("digits.yaml", kHyperband);
    const std::string command =
        fmt::format("cd '{}' && env -u TERM '{}' digits.yaml {}", place.path().string(), HFTA_TUNE_FAKE, streams);
    (void)!std::system(command.c_str());  // what the shell says of a pipe is its last command's
    const json done = report(place);
    CHECK(done["counts"] == json({{"COMPLETE", 5}, {"PRUNED", 12}}));
    CHECK(place.names() == Names{"digits.db", "digits.db.hfta", "digits.yaml"});
  }
}

TEST_CASE("a report beside a run says that a runner lives, and after it that none does") {
  const Workplace place;
  place.write("digits.yaml", kHyperband);
  Program program(place.options({{"HFTA_FAKE_DELAY_MS", "300"}}), {"digits.yaml"});
  REQUIRE(program.wait_for("round 2:"));
  CHECK(report(place)["runner"]["alive"] == true);
  CHECK_THAT(place.run({"report", "--storage", "digits.db"}).out,
             Catch::Contains("runner: process ") && Catch::Contains(", alive, last heartbeat "));
  program.signal(SIGKILL);
  (void)program.wait();
  CHECK(report(place)["runner"]["alive"] == false);
  CHECK(place.run({"digits.yaml"}).code == 0);
  CHECK_THAT(place.run({"report", "--storage", "digits.db"}).out,
             Catch::Contains("runner: none; the last was process "));
}

TEST_CASE("a second signal ends the run at once") {
  const Workplace place;
  place.write("digits.yaml", kHyperband);
  Program program(place.options({{"HFTA_FAKE_DELAY_MS", "100000"}}), {"digits.yaml"});
  REQUIRE(program.wait_for("running study"));
  program.signal(SIGINT);
  program.wait_until_taken(SIGINT);
  program.signal(SIGINT);
  const Finished finished = program.wait();
  CHECK(finished.code == 130);
  CHECK(finished.seconds < 100);  // not waiting for the epoch to end
}

TEST_CASE("one study, one runner") {
  const Workplace place;
  place.write("digits.yaml", kHyperband);
  Program holder(place.options({{"HFTA_FAKE_DELAY_MS", "200"}}), {"digits.yaml"});
  REQUIRE(holder.wait_for("round 1:"));
  const Finished second = place.run({"digits.yaml"});
  CHECK(second.code == 6);
  CHECK_THAT(second.err, Catch::Contains("being run by process ") && Catch::Contains(" on host "));
  CHECK(place.run({"report", "--storage", "digits.db"}).code == 0);
  CHECK(place.run({"digits.yaml", "--fresh"}).code == 0);  // another study of the same store
  holder.signal(SIGKILL);
  (void)holder.wait();
  CHECK(place.run({"digits.yaml"}).code == 0);
}

TEST_CASE("of eight runs that start at once, one runs the study and seven say who does") {
  const Workplace whole;
  whole.write("digits.yaml", kHyperband);
  REQUIRE(whole.run({"digits.yaml"}).code == 0);
  for (const char* beginning : {"no store", "killed"}) {
    CAPTURE(beginning);
    const Workplace place;
    place.write("digits.yaml", kHyperband);
    const auto options = place.options({{"HFTA_FAKE_DELAY_MS", "60000"}});  // none comes to an end
    if (beginning == std::string("killed")) {
      Program first(place.options({{"HFTA_FAKE_DELAY_MS", "100"}}), {"digits.yaml"});
      REQUIRE(first.wait_for("round 1:"));
      first.signal(SIGKILL);
      (void)first.wait();
    }
    std::vector<std::unique_ptr<Program>> all;
    for (int i = 0; i < 8; ++i) all.push_back(std::make_unique<Program>(options, Names{"digits.yaml"}));
    int running = 0;
    for (const auto& program : all) {
      if (program->wait_for(" study 'digits' on ")) {
        ++running;
        continue;
      }
      const Finished refused = program->wait();
      INFO(refused.err);
      CHECK(refused.code == 6);
      CHECK(count(refused.err, "\n") == 1);
      CHECK_THAT(refused.err, Catch::Contains("being run by process ") && Catch::Contains(" on host "));
    }
    CHECK(running == 1);
    all.clear();  // kills the one that runs
    CHECK(place.run({"digits.yaml"}).code == 0);
    CHECK(comparable(report(place)) == comparable(report(whole)));
  }
}

TEST_CASE("a run that hangs is taken over from, and ends with exit code 6 when it wakes up") {
  // Where it hangs. Between file-written and file-renamed its temporary file is swept away under its hands; after
  // state-saved more states would follow.
  const std::string place_of_hanging = GENERATE("file-written@1", "file-synced@1", "file-renamed@1", "state-saved@1",
                                                "committed@1", "trials-added@1", "epoch-ended@5");
  CAPTURE(place_of_hanging);
  const Workplace whole;
  whole.write("digits.yaml", kHyperband);
  REQUIRE(whole.run({"digits.yaml"}).code == 0);
  const Workplace place;
  place.write("digits.yaml", kHyperband);
  // Slow enough for states of trials that go on to be saved at all.
  Program hung(place.options({{"HFTA_FAULTS", place_of_hanging + "=stop"}, {"HFTA_FAKE_DELAY_MS", "20"}}),
               {"digits.yaml"});
  REQUIRE(hung.wait_stopped());
  const Finished rest = run_beside(place, hung);  // to its end, before the other one wakes up
  INFO(rest.err);
  CHECK(rest.code == 0);
  hung.signal(SIGCONT);
  const Finished old = hung.wait();
  INFO(old.err);
  CHECK(old.code == 6);
  CHECK_THAT(old.err, Catch::Contains("hfta-tune: ") &&
                          Catch::Contains("study 'digits': it was taken over by process ") &&
                          Catch::Contains("this one stops"));
  CHECK(comparable(report(place)) == comparable(report(whole)));
  CHECK(state_files(place) == state_files(whole));
}

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
  Program program(place.options({{"HFTA_FAKE_DELAY_MS", "20"}}), {"digits.yaml", "--set", "seed=5", "--trials", "12"});
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
  const Environment first = {{"HFTA_FAKE_MODEL", "aaaa"}, {"HFTA_FAKE_DELAY_MS", "20"}};
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
