/// Looking at a store without a write, whatever state it was left in, and saying what is wrong with it.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <optional>
#include <span>
#include <thread>

#include "storage/checkpoints.hpp"
#include "storage/sqlite/backup.hpp"
#include "storage/sqlite/connection.hpp"
#include "storage/sqlite/sqlite_store.hpp"
#include "storage/state_survey.hpp"
#include "tests/storage/checks.hpp"
#include "tests/storage/samples.hpp"
#include "tests/storage/sqlite/fault_vfs.hpp"

namespace hfta::storage::testing {
namespace {

namespace fs = std::filesystem;
using Mode = SqliteStore::Mode;
using Lines = std::vector<std::string>;

/// The file and its journal, as far as they are there.
struct Bytes {
  explicit Bytes(const fs::path& file) : store(read_file(file)) {
    if (fs::exists(file.string() + "-journal")) journal = read_file(file.string() + "-journal");
  }
  bool operator==(const Bytes&) const = default;
  std::string store;
  std::optional<std::string> journal;
};

TEST_CASE("examine: a half-written transaction is taken back in a private copy, and stays on the disk", "[examine]") {
  const TempFolder folder;
  const fs::path file = folder / "s.db", left = folder / "left.db";
  write_store(file);
  std::vector<Bytes> on_disk;
  {
    FaultyDisk disk;
    SqliteStore store = SqliteStore::open(file, Mode::kReadWrite);
    disk.observe([&](int) { on_disk.emplace_back(file); });
    Changes changes;
    changes.epochs = {{3, {3, {{"train_loss", 0.25}, {"val_accuracy", 0.5}}}, 0.5}};
    store.commit("s", changes);
  }
  int half_written = 0;
  for (const Bytes& bytes : on_disk) {
    write_file(left, bytes.store);
    fs::remove(folder / "left.db-journal");
    if (bytes.journal) write_file(folder / "left.db-journal", *bytes.journal);
    {
      SqliteStore store = SqliteStore::open(left, Mode::kExamine);
      half_written += store.pending() == SqliteStore::Pending::kHalfWritten ? 1 : 0;
      CHECK(store.path() == fs::canonical(left));
      CHECK(store.structural_faults().empty());
      check_equal(store.trials("s"), sample_trials());
    }
    CHECK((Bytes(left) == bytes));
    // What is kept before a repair can still be taken back, or kept from it.
    const fs::path kept = keep_before_repair(left);
    CHECK((Bytes(left) == bytes));
    check_equal(SqliteStore::open(kept, Mode::kReadOnly).trials("s"), sample_trials());
    check_equal(SqliteStore::open(left, Mode::kReadOnly).trials("s"), sample_trials());
    for (const char* ending : {"", "-journal"}) fs::remove(kept.string() + ending);
  }
  CHECK(half_written >= 2);
}

TEST_CASE("examine: a file in WAL mode is read without a file beside it", "[examine]") {
  const TempFolder folder;
  const fs::path file = folder / "s.db";
  write_store(file);
  Connection(file, true, false).execute("PRAGMA journal_mode=WAL");
  const std::string before = read_file(file);
  REQUIRE_FALSE(fs::exists(folder / "s.db-shm"));
  {
    SqliteStore store = SqliteStore::open(file, Mode::kExamine);
    CHECK((store.pending() == SqliteStore::Pending::kLog));
    check_equal(store.trials("s"), sample_trials());
    CHECK_FALSE(fs::exists(folder / "s.db-shm"));
  }
  CHECK(read_file(file) == before);
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("examine: a store says what it is, and what was never so in its rows", "[examine]") {
  struct Case {
    const char* sql;
    const char* says;
  };
  const Case cases[] = {
      {"UPDATE trials SET number = 1 WHERE number = 2", "trial 1: found 2 trials of that number"},
      {"UPDATE trials SET datetime_complete = '2026-11-21 08:00:00' WHERE number = 3",
       "trial 3: found a time at which"},
      {"DELETE FROM trial_values WHERE trial_id = 1", "trial 0: found no value"},
      {"INSERT INTO trial_values (trial_id, objective, value, value_type) VALUES (1, 1, 1, 'FINITE')",
       "trial 0: found 2 values, wanted 1, one for each objective"},
      {"INSERT INTO trial_values (trial_id, objective, value, value_type) VALUES (4, 0, 1, 'FINITE')",
       "trial 3: found a value, wanted none for a trial that is RUNNING"},
      {"DELETE FROM hfta_epoch_metrics WHERE trial_id = 1 AND epoch = 1",
       "trial 0: found 1 epochs of which the last is epoch 2"},
      {"UPDATE hfta_trials SET draw = 77 WHERE draw = 5", "found 6 draws of which the last is draw 77"},
      {"UPDATE trial_intermediate_values SET intermediate_value = 0.1 WHERE trial_id = 1 AND step = 2",
       "trial 0: epoch 2: found 0.1 in trial_intermediate_values, which Optuna reads, wanted 0.75"},
      {"DELETE FROM trial_intermediate_values WHERE trial_id = 1 AND step = 2",
       "trial 0: epoch 2: found nothing in trial_intermediate_values, which Optuna reads, wanted 0.75"},
      {"INSERT INTO hfta_occupancy SELECT study_id, round, array, 99, trial_id, epoch FROM hfta_occupancy WHERE slot = "
       "5"
       " AND round = 1",
       "round 1: found trial 5 in 2 slots"},
      {"DELETE FROM hfta_rounds WHERE round = 1", "round 1: found trials in "},
  };
  for (const Case& c : cases) {
    INFO(c.sql);
    const TempFolder folder;
    const fs::path file = folder / "s.db";
    write_store(file);
    CHECK(SqliteStore::open(file, Mode::kExamine).row_faults("s").empty());
    Connection(file, true, false).execute(c.sql);
    SqliteStore store = SqliteStore::open(file, Mode::kExamine);
    const Lines faults = store.row_faults("s");
    REQUIRE(faults.size() == 1);
    CHECK_THAT(faults.front(), Catch::Contains(c.says));
    CHECK(store.structural_faults().empty());
    CHECK(store.schema() == kNewestSchema);
    CHECK(store.home() == fs::canonical(file));
  }
}

TEST_CASE("examine: a number of more than 32 bits is refused where it is read, and none is counted on from it",
          "[examine]") {
  const auto trials = [](SqliteStore& store) { (void)store.trials("s", Store::Damage::kMark); };
  const auto draws = [](SqliteStore& store) { (void)store.draws("s"); };
  const auto arrays = [](SqliteStore& store) { (void)store.arrays("s"); };
  const auto rounds = [](SqliteStore& store) { (void)store.rounds("s"); };
  const auto occupancy = [](SqliteStore& store) { (void)store.occupancy("s"); };
  const auto enqueued = [](SqliteStore& store) { (void)store.enqueued("s"); };
  const auto add = [](SqliteStore& store) { (void)store.add_trials("s", {{params_of(6)}, {params_of(7)}}, at(90)); };
  struct Case {
    const char* sql;
    void (*reads)(SqliteStore&);
    const char* says;
  };
  const Case cases[] = {
      {"UPDATE trials SET number = 2147483648 WHERE number = 5", trials,
       "found 2147483648 in column 'number', wanted -2147483648 to 2147483647"},
      {"UPDATE trials SET number = -2147483649 WHERE number = 5", draws, "found -2147483649 in column 'number'"},
      {"UPDATE hfta_epoch_metrics SET epoch = 99999999999 WHERE trial_id = 1 AND epoch = 2", trials,
       "found 99999999999 in column 'epoch'"},
      {"UPDATE hfta_arrays SET width = 99999999999, digest = NULL WHERE array = 1", arrays,
       "found 99999999999 in column 'width'"},
      {"UPDATE hfta_rounds SET occupied = 99999999999, digest = NULL", rounds,
       "found 99999999999 in column 'occupied'"},
      {"UPDATE hfta_occupancy SET epoch = 99999999999", occupancy, "found 99999999999 in column 'epoch'"},
      {"INSERT INTO trials (number, study_id, state) VALUES (99999999999, 1, 'WAITING')", enqueued,
       "found 99999999999 in column 'number'"},
      {"UPDATE trials SET number = 9223372036854775807 WHERE number = 5", add,
       "found 9223372036854775807 in column 'number'"},
      {"UPDATE trials SET number = 2147483647 WHERE number = 5", add, "found trial 2147483647 as the last one"},
      {"UPDATE trials SET number = 2147483646 WHERE number = 5", add, "found trial 2147483647 as the last one"},
      {"UPDATE hfta_trials SET draw = 2147483648 WHERE draw = 5", add, "found 2147483648 in column 'draw'"},
      {"UPDATE hfta_trials SET draw = 2147483647 WHERE draw = 5", add, "found draw 2147483647 as the last one"},
  };
  for (const Case& c : cases) {
    INFO(c.sql);
    const TempFolder folder;
    const fs::path file = folder / "s.db";
    write_store(file);
    Connection(file, true, false).execute(c.sql);
    const std::string before = read_file(file);
    SqliteStore store = SqliteStore::open(file, Mode::kReadWrite);
    check_refused(file, c.says, [&] { c.reads(store); });
    CHECK(read_file(file) == before);
  }
}

TEST_CASE("examine: rows without what they belong to are found", "[examine]") {
  const TempFolder folder;
  const fs::path file = folder / "s.db";
  write_store(file);
  Connection(file, true, false)
      .execute("PRAGMA foreign_keys=OFF; UPDATE trial_params SET trial_id = 4711 WHERE param_id = 1");
  const auto faults = SqliteStore::open(file, Mode::kExamine).structural_faults();
  REQUIRE(faults.size() == 1);
  CHECK(faults.front().words == "row 1 of trial_params belongs to a row of trials that is not there");
  CHECK_FALSE(faults.front().in_index);
}

TEST_CASE("examine: a damaged index is made anew from the rows, other damage is left as it is", "[examine]") {
  const TempFolder folder;
  const fs::path file = folder / "s.db";
  write_store(file);
  const std::string good = read_file(file);
  // The name of the study, where the index over names has it: its page holds no other row.
  std::string bad = good;
  std::size_t page = 0;
  {
    Connection connection(file, false, false);
    Query query = connection.query("SELECT rootpage FROM sqlite_master WHERE name = 'ix_studies_study_name'");
    REQUIRE(query.next());
    page = static_cast<std::size_t>(query.integer(0));
  }
  const std::size_t at = bad.rfind('s', page * 4096 - 1);
  REQUIRE(at >= (page - 1) * 4096);
  bad[at] = 'x';
  write_file(file, bad);
  {
    const auto faults = SqliteStore::open(file, Mode::kExamine).structural_faults();
    REQUIRE_FALSE(faults.empty());
    for (const auto& fault : faults) CHECK(fault.in_index);
  }
  CHECK(read_file(file) == bad);
  SqliteStore::open(file, Mode::kReadWrite).rebuild_indexes();
  SqliteStore store = SqliteStore::open(file, Mode::kExamine);
  CHECK(store.structural_faults().empty());
  check_equal(store.trials("s"), sample_trials());
}

TEST_CASE("examine: rounds and their slots are read of one moment, whoever writes meanwhile", "[examine]") {
  const TempFolder folder;
  const fs::path file = folder / "s.db";
  write_store(file);
  std::atomic<int> written{2};
  std::jthread writer([&](const std::stop_token& stop) {
    SqliteStore store = SqliteStore::open(file, Mode::kReadWrite);
    while (!stop.stop_requested()) {
      Changes changes;
      changes.rounds = {{written, 0, 3, 1, 0.5}};
      changes.occupancy = {{0, written, 0, 3, written}};
      store.commit("s", changes);
      ++written;
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
    }
  });
  SqliteStore store = SqliteStore::open(file, Mode::kExamine);
  while (written < 60) CHECK_NOTHROW(store.rounds("s"));
}

TEST_CASE("examine: what lies in a folder of states is told apart", "[examine]") {
  using Kind = StateEntry::Kind;
  const TempFolder folder;
  SystemFiles files;
  const std::string state(3000, 's');
  {
    Checkpoints checkpoints(files, folder / "running");
    for (const int trial : {1, 2, 3}) checkpoints.save(trial, 4, std::as_bytes(std::span(state)));
  }
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder / "running")) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  write_file(paths[0], state + "x");
  write_file(paths[1], std::string(3000, 't'));
  fs::create_directory(folder / "running/folder");
  fs::create_symlink(paths[2], folder / "running/link");
  write_file(folder / "running/trial-1.epoch-1.1.0.safetensors.tmp.1", "x");
  write_file(folder / "running/trial-1.safetensors", "x");
  std::map<std::string, Kind> kinds;
  for (const StateEntry& entry : survey_states(folder.path(), folder / "running")) kinds[entry.name] = entry.kind;
  CHECK((kinds == std::map<std::string, Kind>{{paths[0].filename(), Kind::kDamaged},
                                              {paths[1].filename(), Kind::kDamaged},
                                              {paths[2].filename(), Kind::kState},
                                              {"folder", Kind::kNoFile},
                                              {"link", Kind::kNoFile},
                                              {"trial-1.epoch-1.1.0.safetensors.tmp.1", Kind::kTemporary},
                                              {"trial-1.safetensors", Kind::kUnknown}}));
  CHECK(survey_states(folder.path(), folder / "none").empty());
}

}  // namespace
}  // namespace hfta::storage::testing
