// Runs: finished, stopped, gone on with, refused.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <cstddef>
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
#include "reports.hpp"
#include "storage/checkpoints.hpp"
#include "storage/sqlite/sqlite_store.hpp"
#include "study_texts.hpp"

using namespace hfta::testing;
using nlohmann::json;
using Names = std::vector<std::string>;

namespace {

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

TEST_CASE("a grid ends where its configurations do, though run_cap has room for more") {
  for (const char* rule : {"asha", "sha", "median", "[sha, {name: patience, patience: 2}]"}) {
    CAPTURE(rule);
    const Workplace place;
    std::string text = with(kHyperband, "method: hyperband\nhyperband: {min_epochs: 1, max_epochs: 9, eta: 3}\n",
                            fmt::format("method: grid\nearly_stopping: {}\n", rule));
    text = with(text, "lr: {distribution: log_uniform_values, min: 1.0e-4, max: 1.0}", "lr: {values: [0.01, 0.1]}");
    place.write("digits.yaml", text);
    const Finished finished = place.run({"digits.yaml", "--json"});
    INFO(finished.err);
    CHECK(finished.code == 0);
    const json all = json::parse(place.run({"report", "--storage", "digits.db", "--format", "json"}).out);
    CHECK(all["trials"].size() == 4);
  }
}

TEST_CASE("report --format events of a study that its budget ended says that it is finished") {
  const Workplace place;
  place.write("digits.yaml", with(kHyperband, "run_cap: 17", "budget: {epochs: 20}"));
  const std::string live = place.run({"digits.yaml", "--json"}).out;
  const std::string told = place.run({"report", "--storage", "digits.db", "--format", "events"}).out;
  const auto last = [](const std::string& lines) {
    return json::parse(lines.substr(lines.rfind('\n', lines.size() - 2) + 1));
  };
  CHECK(last(live).at("finished") == true);
  CHECK(last(told).at("finished") == true);
}

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
  Program program(place.options({{"HFTA_FAKE_DELAY_MS", "100"}}), {"digits.yaml", "--json"});
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
    Program program(place.options({{"HFTA_FAKE_DELAY_MS", "100"}}), {"digits.yaml"});
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
    Program program(place.options({{"HFTA_FAKE_DELAY_MS", "100"}}), {"digits.yaml"});
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
    program.wait_until_taken(signal);
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
  CHECK(program.wait().seconds < 30);  // two, and what a busy machine takes to begin
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
  Program program(place.options({{"HFTA_FAKE_DELAY_MS", "1000"}}), {"digits.yaml"});
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
  Program holder(place.options({{"HFTA_FAKE_DELAY_MS", "1000"}}), {"digits.yaml"});
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
