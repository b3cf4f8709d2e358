// The real command, killed or without power after every single change that it made to the disk: the same command goes
// on to the same end, and what was told of is there.

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "../engine/cli/comparable.hpp"
#include "../engine/cli/program.hpp"
#include "recorded_disk.hpp"
#include "storage/sqlite/sqlite_store.hpp"

using namespace hfta;
using namespace hfta::testing;
using nlohmann::json;

namespace {

const std::string kStudy = R"(study: small
storage: small.db
seed: 1
method: hyperband
hyperband: {min_epochs: 1, max_epochs: 4, eta: 2}
run_cap: 7
metric: {name: val_accuracy, goal: maximize}
parameters:
  lr: {distribution: log_uniform_values, min: 1.0e-4, max: 1.0}
model:
  layers: [flatten, {linear: [64, 10]}]
data: {name: digits, batch_size: 64, validation: 0.2, test: 0.2}
train:
  epochs: 4
  loss: cross_entropy
  optimizer: {name: sgd, lr: "${lr}"}
array: {width: 3}
)";

json results(const Workplace& place) {
  const Finished finished = place.run({"report", "small", "--storage", "small.db", "--format", "json"});
  INFO(finished.err);
  REQUIRE(finished.code == 0);
  return comparable(json::parse(finished.out));
}

/// A run whose changes were written down.
struct Recorded {
  Tree before;
  std::string err;
  Workplace logs;
  [[nodiscard]] RecordedDisk disk() const { return {logs.path() / "log", before}; }
};

/// `signal`: what stops it after its second round or a later one, long before its last; 0: nothing.
void record(const Workplace& place, int signal, Recorded& recorded) {
  place.write("small.yaml", kStudy);
  recorded.before = read_tree(place.path());
  Program program(place.options({{"LD_PRELOAD", HFTA_DISK_LOGGER},
                                 {"HFTA_DISK_ROOT", place.path().string()},
                                 {"HFTA_DISK_LOG", (recorded.logs.path() / "log").string()},
                                 {"HFTA_FAKE_DELAY_MS", signal != 0 ? "400" : "20"}}),
                  {"small.yaml"});
  if (signal != 0) {
    REQUIRE(program.wait_for("round 2"));
    program.signal(signal);
  }
  const Finished finished = program.wait();
  INFO(finished.err);
  REQUIRE(finished.code == (signal != 0 ? 128 + signal : 0));
  recorded.err = finished.err;
}

/// Rounds that the first `bytes` of standard error tell of.
int rounds_told(const std::string& err, std::size_t bytes) {
  const std::string told = err.substr(0, bytes);
  const std::size_t last = told.rfind("\nround ");
  return last == std::string::npos ? 0 : std::stoi(told.substr(last + 7));
}

int rounds_stored(const Tree& tree) {
  const Workplace look;
  write_tree(look.path(), tree);
  std::optional<storage::SqliteStore> store =
      storage::SqliteStore::open_if_made(look.path() / "small.db", storage::SqliteStore::Mode::kReadOnly);
  if (!store || !store->find("small")) return 0;
  int rounds = 0;
  for (const storage::RoundRecord& round : store->rounds("small")) rounds = std::max(rounds, round.round + 1);
  return rounds;
}

const char* name_of(Crash crash) {
  return crash == Crash::kKill ? "kill -9" : crash == Crash::kStrict ? "power loss, strict folders" : "power loss";
}

}  // namespace

TEST_CASE("a crash after any change of the disk loses no round that was told of, and the same command goes on") {
  const Crash crash = GENERATE(Crash::kKill, Crash::kStrict, Crash::kJournaled);
  const int signal = GENERATE(0, SIGTERM);
  CAPTURE(name_of(crash), signal);
  const Workplace whole;
  Recorded recorded;
  record(whole, signal, recorded);
  const RecordedDisk disk = recorded.disk();
  const std::vector<RecordedDisk::Left> all = disk.after_every_change(crash);
  CHECK(all.back().tree.contains("small.db"));
  if (signal != 0) REQUIRE(whole.run({"small.yaml"}).code == 0);
  const json expected = results(whole);

  int states = 0, told = 0;
  // While the store is made, every state of a killed one is tried; later, every third.
  for (std::size_t i = 0; i < all.size(); i += crash == Crash::kKill && i > 60 ? 3 : 1, ++states) {
    const RecordedDisk::Left& left = all[i];
    CAPTURE(left.after);
    const int rounds = rounds_told(recorded.err, left.told);
    told = std::max(told, rounds);
    CHECK(rounds_stored(left.tree) >= rounds);
    const Workplace place;
    write_tree(place.path(), left.tree);
    const Finished finished = place.run({"small.yaml"});
    INFO(finished.err);
    REQUIRE(finished.code == 0);
    CHECK(results(place) == expected);
  }
  CHECK(states > 40);
  CHECK(told >= 2);
}
