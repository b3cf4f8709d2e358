// hfta-tune doctor: for each damage what it says, what --repair makes of it, and what the study comes to then.

#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "begun_study.hpp"
#include "program.hpp"
#include "study_texts.hpp"

using namespace hfta::testing;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

const std::vector<std::string> kDoctor = {"doctor", "digits.db"};
const std::vector<std::string> kRepair = {"doctor", "digits.db", "--repair"};

// A study that was begun and stopped, to be copied.
const Workplace& begun() {
  static const Workplace place;
  static const bool made = [] {
    begin_study(place);
    return true;
  }();
  REQUIRE(made);
  return place;
}

void copy_begun(const Workplace& place) {
  fs::copy(begun().path(), place.path(), fs::copy_options::recursive | fs::copy_options::overwrite_existing);
}

// Every file below a folder, with what is in it.
std::vector<std::pair<std::string, std::string>> contents(const Workplace& place) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const auto& entry : fs::recursive_directory_iterator(place.path())) {
    const bool file = fs::symlink_status(entry.path()).type() == fs::file_type::regular;
    all.emplace_back(entry.path().string(), file ? read_file(entry.path()) : "");
  }
  std::sort(all.begin(), all.end());
  return all;
}

fs::path state_of(const Workplace& place) { return checkpoints(place).front(); }

// What a program leaves that is killed when half of its transaction has reached the file.
void change_and_die(const fs::path& file) {
  const pid_t child = ::fork();
  if (child == 0) {
    sqlite3* database = nullptr;
    const bool changed = sqlite3_open(file.c_str(), &database) == SQLITE_OK &&
                         sqlite3_exec(database,
                                      "PRAGMA cache_size=1; BEGIN IMMEDIATE; UPDATE hfta_epoch_metrics SET value = 0;"
                                      "UPDATE trial_params SET param_value = 0; UPDATE trials SET state = 'FAIL'",
                                      nullptr, nullptr, nullptr) == SQLITE_OK;
    ::_exit(changed ? 0 : 1);
  }
  int status = 1;
  REQUIRE((::waitpid(child, &status, 0) == child && status == 0));
}

struct Damage {
  const char* name;
  void (*make)(const Workplace& place);
  const char* severity;  // of the finding
  const char* says;
  bool repairable = true;  // --repair leaves nothing of it
};

const Damage kDamages[] = {
    {"a temporary file",
     [](const Workplace& place) {
       place.write("digits.db.hfta/digits/running/trial-0.epoch-1.3.0.safetensors.tmp.1", "x");
     },
     "note", "killed while it wrote this state"},
    {"a dead holder's file",
     [](const Workplace& place) { place.write("digits.db.hfta/digits/lease.dead-1-0", "process 1 on host dead\n1\n"); },
     "note", "a process that ran the study was killed"},
    {"a flipped bit in a state",
     [](const Workplace& place) {
       const fs::path state = state_of(place);
       std::string bytes = read_file(state);
       bytes[bytes.size() / 2] ^= 1;
       place.write(state.lexically_relative(place.path()), bytes);
     },
     "note", "its bytes are not those of its name"},
    {"a pipe in a state's place",
     [](const Workplace& place) {
       const fs::path state = state_of(place);
       fs::remove(state);
       REQUIRE(::mkfifo(state.c_str(), 0600) == 0);
     },
     "note", "found a pipe, wanted a file"},
    {"a link in a state's place",
     [](const Workplace& place) {
       const fs::path state = state_of(place);
       fs::remove(state);
       fs::create_symlink("/etc/passwd", state);
     },
     "note", "found a symbolic link, wanted a file"},
    {"a state of a trial that is not there",
     [](const Workplace& place) {
       const fs::path state = state_of(place);
       const std::string name = state.filename().string();
       fs::copy_file(state, state.parent_path() / ("trial-9999" + name.substr(name.find('.'))));
     },
     "note", "a state of a trial that the store does not have"},
    {"a state that is ahead of the store",
     [](const Workplace& place) {
       const fs::path state = state_of(place);
       std::string name = state.filename().string();
       const std::size_t at = name.find("epoch-") + 6;
       fs::copy_file(state, state.parent_path() / name.replace(at, name.find('.', at) - at, "8"));
     },
     "note", "put back to an earlier copy"},
    {"a file of somebody else's",
     [](const Workplace& place) { place.write("digits.db.hfta/digits/running/notes.txt", "x"); }, "note",
     "hfta-tune did not write it", false},
    {"a folder of no study",
     [](const Workplace& place) { fs::create_directories(place.path() / "digits.db.hfta/\x1b[2J"); }, "note",
     "of no study in this store", false},
    {"a linked folder of states",
     [](const Workplace& place) {
       const fs::path running = place.path() / "digits.db.hfta/digits/running";
       fs::rename(running, place.path() / "elsewhere");
       fs::create_directory_symlink(place.path() / "elsewhere", running);
     },
     "damage", "found a symbolic link, wanted a folder", false},
};

}  // namespace

TEST_CASE("a store that is as it should be is said to be, and nothing is written") {
  const Workplace place;
  begin_study(place);
  const auto before = contents(place);
  for (int i = 0; i < 2; ++i) {
    const Finished healthy = place.run(i == 0 ? kDoctor : kRepair);
    INFO(healthy.out << healthy.err);
    CHECK(healthy.code == 0);
    CHECK(healthy.err.empty());
    CHECK_THAT(healthy.out, Catch::Contains("ok      digits.db: whole") && Catch::Contains("as they were written") &&
                                Catch::Contains("all whole") && Catch::EndsWith("nothing is damaged, 0 notes\n"));
  }
  CHECK((contents(place) == before));
  const json all = json::parse(place.run({"doctor", "--storage", "digits.db", "--format", "json"}).out);
  CHECK(all["damage"] == 0);
  for (const json& finding : all["findings"]) CHECK(finding["severity"] == "ok");
}

TEST_CASE("each damage beside a store is named, mended where that is safe, and the study ends the same") {
  for (const Damage& damage : kDamages) {
    CAPTURE(damage.name);
    const Workplace place;
    copy_begun(place);
    damage.make(place);
    const auto before = contents(place);
    const bool is_damage = damage.severity == std::string("damage");
    const Finished found = place.run(kDoctor);
    INFO(found.out << found.err);
    CHECK(found.code == (is_damage ? 3 : 0));
    CHECK(found.err.empty());
    CHECK(found.out.find('\x1b') == std::string::npos);
    CHECK_THAT(found.out, Catch::Contains(damage.says) && Catch::Contains(damage.severity));
    CHECK((contents(place) == before));
    const Finished repaired = place.run(kRepair);
    INFO(repaired.out << repaired.err);
    CHECK(repaired.code == (is_damage ? 3 : 0));
    CHECK((repaired.out.find(damage.says) == std::string::npos) == damage.repairable);
    CHECK((repaired.out.find("done ") != std::string::npos) == damage.repairable);
    CHECK(fs::exists(place.path() / "digits.db.before-repair") == damage.repairable);
    if (is_damage) continue;
    const Finished rest = place.run({"digits.yaml"});
    INFO(rest.err);
    CHECK(rest.code == 0);
    CHECK((results(place, "digits.db") == whole_results()));
  }
}

TEST_CASE("doctor says that a store was copied or moved away from its states, and what to do") {
  const Workplace place;
  copy_begun(place);
  REQUIRE(place.run({"digits.yaml"}).code == 0);  // the copied store's home is here now
  fs::create_directory(place.path() / "elsewhere");
  fs::copy_file(place.path() / "digits.db", place.path() / "elsewhere/digits.db");
  const std::vector<std::string> ask = {"doctor", "elsewhere/digits.db"};
  const Finished copied = place.run(ask);
  INFO(copied.out << copied.err);
  CHECK(copied.code == 0);
  CHECK_THAT(copied.out, Catch::Contains("it is a copy of a store that was run as") &&
                             Catch::Contains("which is there still") && Catch::Contains("it has no states here") &&
                             Catch::Contains("for a copy with its states use hfta-tune backup"));
  fs::remove(place.path() / "digits.db");
  const Finished moved = place.run(ask);
  INFO(moved.out << moved.err);
  CHECK_THAT(moved.out, Catch::Contains("and has been moved or copied since") && Catch::Contains("move ") &&
                            Catch::Contains("elsewhere/digits.db.hfta"));
  fs::rename(place.path() / "digits.db.hfta", place.path() / "elsewhere/digits.db.hfta");
  CHECK(place.run(ask).out.find("no states here") == std::string::npos);
}

TEST_CASE("weights that are lost are damage that nothing brings back") {
  const Workplace place;
  place.write("digits.yaml", kHyperband);
  REQUIRE(place.run({"digits.yaml"}).code == 0);
  CHECK(place.run(kDoctor).code == 0);
  fs::remove_all(place.path() / "digits.db.hfta/digits/finished");
  const Finished found = place.run(kRepair);
  INFO(found.out);
  CHECK(found.code == 3);
  CHECK_THAT(found.out,
             Catch::Contains("one of the best, are not there or damaged") && Catch::Contains("from a backup"));
  fs::remove_all(place.path() / "digits.db.hfta");
  CHECK_THAT(place.run(kDoctor).out, Catch::Contains("there are no states"));
}

// The best repetition of the best configuration need not be among the best trials.
TEST_CASE("doctor and studies know configurations, whose trials repeat them") {
  const Workplace place;
  std::string repeated = with(kHyperband, "method: hyperband\nhyperband: {min_epochs: 1, max_epochs: 9, eta: 3}\n",
                              "method: random\nrepeat: 5\nkeep: 1\n");
  place.write("digits.yaml", repeated);
  REQUIRE(place.run({"digits.yaml"}).code == 0);
  const auto before = contents(place);
  const Finished found = place.run(kRepair);
  INFO(found.out);
  CHECK_THAT(found.out, Catch::EndsWith("nothing is damaged, 0 notes\n"));
  CHECK((contents(place) == before));
  const json report = json::parse(place.run({"report", "--storage", "digits.db", "--format", "json"}).out);
  const json studies = json::parse(place.run({"studies", "--storage", "digits.db", "--format", "json"}).out);
  CHECK(studies[0]["best"] == report["best"]["value"]);
}

TEST_CASE("a half-written transaction is left alone, and taken back by --repair") {
  const Workplace killed;
  copy_begun(killed);
  change_and_die(killed.path() / "digits.db");
  REQUIRE(fs::exists(killed.path() / "digits.db-journal"));
  const auto before = contents(killed);
  const Finished found = killed.run(kDoctor);
  INFO(found.out << found.err);
  CHECK(found.code == 0);
  CHECK_THAT(found.out, Catch::Contains("note    digits.db-journal: a program was killed while it wrote"));
  CHECK((contents(killed) == before));
  const Finished repaired = killed.run(kRepair);
  INFO(repaired.out << repaired.err);
  CHECK(repaired.code == 0);
  CHECK_THAT(repaired.out, Catch::Contains("done    took back the half-written transaction"));
  CHECK_FALSE(fs::exists(killed.path() / "digits.db-journal"));
  CHECK(fs::exists(killed.path() / "digits.db.before-repair-journal"));
  CHECK(killed.run({"digits.yaml"}).code == 0);
  CHECK((results(killed, "digits.db") == whole_results()));
}

TEST_CASE("while a study is being run doctor says so, and --repair does nothing") {
  const Workplace place;
  place.write("digits.yaml", kHyperband);
  Program program(place.options({{"HFTA_FAKE_DELAY_MS", "300"}}), {"digits.yaml"});
  REQUIRE(program.wait_for("round 2:"));
  place.write("digits.db.hfta/digits/finished/trial-0.epoch-1.3.0.safetensors", "x");
  const Finished found = place.run(kDoctor);
  INFO(found.out << found.err);
  CHECK_THAT(found.out, Catch::Contains("runs it, last heartbeat"));
  const Finished refused = place.run(kRepair);
  INFO(refused.out << refused.err);
  CHECK(refused.code == 6);
  CHECK_THAT(refused.err, Catch::Contains("is being run by process "));
  CHECK_FALSE(fs::exists(place.path() / "digits.db.before-repair"));
  CHECK(program.wait().code == 0);
  CHECK((results(place, "digits.db") == whole_results()));
}

TEST_CASE("doctor says of any file what it is, and changes no byte of it") {
  const Workplace place;
  copy_begun(place);
  const std::string good = place.read("digits.db");
  std::vector<std::string> files = {"",
                                    "hello\n",
                                    std::string(8192, '\0'),
                                    good.substr(0, 50),
                                    good.substr(0, 5000),
                                    good.substr(0, good.size() - 4096)};
  std::mt19937 random(std::random_device{}());
  for (int i = 0; i < 200; ++i) {
    std::string flipped = good;
    const std::size_t at = i < 60 ? random() % 100 : random() % good.size();
    flipped[at] = static_cast<char>(flipped[at] ^ 1 << random() % 8);
    files.push_back(std::move(flipped));
  }
  int damaged = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    place.write("digits.db", files[i]);
    const auto before = contents(place);
    const Finished found = place.run(kDoctor);
    INFO(i << "\n" << found.out << found.err);
    CHECK((found.code == 0 || found.code == 3));
    if (i < 6) CHECK(found.code == 3);
    CHECK(found.err.empty());
    damaged += found.code == 3 ? 1 : 0;
    CHECK((contents(place) == before));
  }
  CHECK(damaged > 20);
}

TEST_CASE("doctor: a store whose making was broken off is no damage") {
  const Workplace place;
  place.write("digits.db", "");
  const Finished found = place.run(kDoctor);
  CHECK(found.code == 0);
  CHECK_THAT(found.out, Catch::Contains("it is empty") && Catch::Contains("the same command makes it"));
}

TEST_CASE("doctor asked for what is not there is one line") {
  const Workplace place;
  copy_begun(place);
  struct Case {
    std::vector<std::string> words;
    int code;
    const char* says;
  };
  const Case cases[] = {{{"doctor"}, 2, "storage is missing"},
                        {{"doctor", "none.db"}, 3, "no such file"},
                        {{"doctor", "digits.db", "--study", "digit"}, 2, "did you mean 'digits'?"},
                        {{"doctor", "digits.db", "--storage", "digits.db"}, 2, "wanted one of the two"},
                        {{"doctor", "digits.db", "--format", "csv"}, 2, "wanted one of table, json"}};
  for (const Case& c : cases) {
    const Finished refused = place.run(c.words);
    INFO(refused.out << refused.err);
    CHECK(refused.code == c.code);
    CHECK(std::count(refused.err.begin(), refused.err.end(), '\n') == 1);
    CHECK_THAT(refused.err, Catch::Contains(c.says));
  }
}
