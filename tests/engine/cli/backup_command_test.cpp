// hfta-tune backup: of stores that are being run, into places that take nothing, and killed in the middle.

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "begun_study.hpp"
#include "program.hpp"
#include "study_texts.hpp"

using namespace hfta::testing;
namespace fs = std::filesystem;

namespace {

const std::vector<std::string> kBackup = {"backup", "copy.db", "--storage", "digits.db"};

// Of a backup that was not finished.
bool is_left(const std::string& name) { return name.starts_with("copy.db") || name.starts_with(".hfta-backup"); }

std::vector<std::string> left(const Workplace& place) {
  std::vector<std::string> names = place.names();
  std::erase_if(names, [](const std::string& name) { return !is_left(name); });
  return names;
}

void check_ends_the_same(const Workplace& place, const std::string& store) {
  const Finished rest = place.run(run_in(store));
  INFO(rest.err);
  CHECK(rest.code == 0);
  CHECK((results(place, store) == whole_results()));
}

}  // namespace

TEST_CASE("a backup of a run ends as the run does, where it lies and moved over the store") {
  std::random_device random;
  for (const bool moved : {false, true}) {
    for (int i = 0; i < 6; ++i) {
      const auto milliseconds = std::chrono::milliseconds(random() % 400);
      CAPTURE(moved, milliseconds.count());
      const Workplace place;
      place.write("digits.yaml", kHyperband);
      Program program(place.options({{"HFTA_FAKE_DELAY_MS", "10"}}), {"digits.yaml"});
      REQUIRE(program.wait_for("round 1:"));
      std::this_thread::sleep_for(milliseconds);
      const Finished copied = place.run(kBackup);
      INFO(copied.err << copied.out);
      REQUIRE(copied.code == 0);
      CHECK(copied.err.empty());
      program.signal(SIGKILL);
      (void)program.wait();
      REQUIRE((left(place).front() == "copy.db" && left(place).size() <= 2));
      if (!moved) {
        check_ends_the_same(place, "copy.db");
        continue;
      }
      fs::remove_all(place.path() / "digits.db.hfta");
      fs::remove(place.path() / "digits.db-journal");
      fs::rename(place.path() / "copy.db", place.path() / "digits.db");
      if (fs::exists(place.path() / "copy.db.hfta")) {
        fs::rename(place.path() / "copy.db.hfta", place.path() / "digits.db.hfta");
      }
      check_ends_the_same(place, "digits.db");
    }
  }
}

TEST_CASE("a backup changes nothing of its store, says what it holds, and goes on from its states") {
  const Workplace place;
  begin_study(place);
  const std::string before = place.read("digits.db");
  const Finished copied = place.run(kBackup);
  INFO(copied.err);
  CHECK(copied.code == 0);
  CHECK(std::count(copied.out.begin(), copied.out.end(), '\n') == 1);
  CHECK_THAT(copied.out, Catch::StartsWith("copy.db: 1 study, ") && Catch::Contains(" states in copy.db.hfta; ") &&
                             Catch::EndsWith(" bytes\n"));
  CHECK(place.read("digits.db") == before);
  for (const fs::path& state : checkpoints(place)) {
    const std::string trial = state.filename().string().substr(0, state.filename().string().find('.'));
    const auto of_trial = [&](const fs::directory_entry& entry) {
      return entry.path().filename().string().starts_with(trial + ".");
    };
    const fs::directory_iterator copies(place.path() / "copy.db.hfta/digits/running");
    CHECK(std::any_of(fs::begin(copies), fs::end(copies), of_trial));
  }
  const Finished rest = place.run(run_in("copy.db"));
  CHECK(rest.code == 0);
  CHECK_THAT(rest.err, !Catch::Contains("round 0:"));
  CHECK((results(place, "copy.db") == whole_results()));
  CHECK(place.read("digits.db") == before);
  check_ends_the_same(place, "digits.db");
}

TEST_CASE("a backup that is killed leaves nothing that looks like one, and the next one clears up") {
  for (const char* at : {"file-written", "file-synced@3", "store-copied", "states-placed", "backup-placed"}) {
    CAPTURE(at);
    const Workplace place;
    begin_study(place);
    const Finished killed = place.run(kBackup, {{"HFTA_FAULTS", std::string(at) + "=kill"}});
    CHECK(killed.code == 128 + SIGKILL);
    const bool placed = at == std::string("backup-placed"),
               states_placed = placed || at == std::string("states-placed");
    CHECK(fs::exists(place.path() / "copy.db") == placed);
    CHECK(fs::exists(place.path() / "copy.db.hfta") == states_placed);
    const Finished next = place.run(kBackup);
    INFO(next.err);
    CHECK(next.code == (states_placed ? 2 : 0));
    if (states_placed) {
      CHECK_THAT(next.err, Catch::Contains("there already, wanted a new name"));
      CHECK(place.run({"backup", "copy.db.2", "--storage", "digits.db"}).code == 0);
    }
    for (const std::string& name : left(place)) CHECK_THAT(name, !Catch::StartsWith("."));
    check_ends_the_same(place, states_placed ? "copy.db.2" : "copy.db");
  }
}

TEST_CASE("a backup into a full disk leaves nothing") {
  for (const char* at : {"file-written=full", "file-synced@2=full", "store-copied=full", "states-placed=fail"}) {
    CAPTURE(at);
    const Workplace place;
    begin_study(place);
    const Finished failed = place.run(kBackup, {{"HFTA_FAULTS", at}});
    CHECK((failed.code == 3 || failed.code == 4));
    CHECK(std::count(failed.err.begin(), failed.err.end(), '\n') == 1);
    CHECK(left(place).empty());
    CHECK(place.run(kBackup).code == 0);
  }
}

TEST_CASE("a backup is not written over anything, nor into nowhere") {
  const Workplace place;
  begin_study(place);
  place.write("taken", "precious");
  fs::create_directories(place.path() / "folder");
  fs::create_directories(place.path() / "half.hfta");
  fs::create_symlink("nowhere", place.path() / "link");
  const std::vector<std::string> before = place.names();
  struct Case {
    const char* destination;
    const char* says;
  };
  const Case cases[] = {{"taken", "it is there already"},
                        {"digits.db", "it is there already"},
                        {"link", "it is there already"},
                        {"half", "half.hfta: it is there already"},
                        {"folder", "found a folder, wanted the name of a new file"},
                        {"none/copy.db", "found no folder"},
                        {"\x1b[2J\n/x", "\\x1b[2J\\x0a"},
                        {"mysql://x", "not supported"}};
  for (const Case& c : cases) {
    const Finished refused = place.run({"backup", c.destination, "--storage", "digits.db"});
    INFO(refused.err);
    CHECK(refused.code == 2);
    CHECK(std::count(refused.err.begin(), refused.err.end(), '\n') == 1);
    CHECK(refused.err.find('\x1b') == std::string::npos);
    CHECK_THAT(refused.err, Catch::Contains(c.says));
  }
  CHECK(place.run({"backup", "copy.db", "--storage", "none.db"}).code == 3);
  CHECK(place.names() == before);
  CHECK(place.read("taken") == "precious");
}
