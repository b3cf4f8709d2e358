/// Copies of a store that others write to, and of one whose disk is full.
#include "storage/sqlite/backup.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <span>
#include <thread>

#include "base/files.hpp"
#include "storage/checkpoints.hpp"
#include "storage/sqlite/connection.hpp"
#include "storage/sqlite/sqlite_store.hpp"
#include "tests/source_folder.hpp"
#include "tests/storage/checks.hpp"
#include "tests/storage/samples.hpp"
#include "tests/storage/sqlite/fault_vfs.hpp"

namespace hfta::storage::testing {
namespace {

namespace fs = std::filesystem;
using Mode = SqliteStore::Mode;

const Faults kNone;

void save(const fs::path& store, const char* kind, int trial, int epoch, const std::string& state) {
  SystemFiles files;
  Checkpoints(files, checkpoint_folder(store, "s") / kind).save(trial, epoch, std::as_bytes(std::span(state)));
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  if (!fs::exists(folder)) return names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

TEST_CASE("backup: a copy is a store of its own with the same rows", "[backup]") {
  const TempFolder folder;
  const fs::path file = folder / "s.db", copy = folder / "copy.db";
  write_store(file);
  ::chmod(file.c_str(), 0600);
  const Backup backup = back_up(file, copy, kNone);
  CHECK(backup.studies == 1);
  CHECK(backup.trials == kSampleTrials);
  CHECK(backup.rounds == 2);
  CHECK(backup.states == 0);
  CHECK(backup.bytes == fs::file_size(copy));
  CHECK(backup.damage.empty());
  CHECK(fs::status(copy).permissions() == fs::perms(0600));
  CHECK(names_in(folder.path()) == std::vector<std::string>{"copy.db", "s.db"});
  SqliteStore store = SqliteStore::open(copy, Mode::kReadWrite);
  check_equal(store.trials("s"), sample_trials());
  CHECK(store.lease("s") == sample_lease());
  CHECK_FALSE(Connection(copy, false, false).query("SELECT 1 FROM hfta_home").next());
  write_sample(store, "another");
}

TEST_CASE("backup: a store in WAL mode, and one of an earlier program, are copied as they are read", "[backup]") {
  const TempFolder folder;
  const fs::path file = folder / "s.db", copy = folder / "copy.db";
  write_store(file);
  Connection wal(file, true, false);
  wal.execute("PRAGMA journal_mode=WAL; UPDATE hfta_leases SET holder = 'in the log alone'");
  (void)back_up(file, copy, kNone);
  CHECK(SqliteStore::open(copy, Mode::kReadOnly).lease("s")->holder == "in the log alone");
  CHECK_FALSE(fs::exists(folder / "copy.db-wal"));
  const fs::path optunas = folder / "optuna.db";
  {
    Connection connection(optunas, true, true);
    connection.execute("PRAGMA foreign_keys=OFF");
    connection.execute(
        read_file(hfta::testing::source_folder() / "tests/storage/sqlite/golden/optuna-5.0.sql").c_str());
  }
  const Backup backup = back_up(optunas, folder / "optuna-copy.db", kNone);
  CHECK(backup.studies == 2);
  CHECK(backup.trials == 8);
}

TEST_CASE("backup: states are those that the copied table knows, whole, the newest", "[backup]") {
  const TempFolder folder;
  const fs::path file = folder / "s.db", copy = folder / "copy.db";
  write_store(file);
  save(file, "running", 3, 1, "before");
  save(file, "running", 3, 2, "damaged");
  for (const std::string& name : names_in(checkpoint_folder(file, "s") / "running")) {
    if (name.find("epoch-2") != std::string::npos) write_file(checkpoint_folder(file, "s") / "running" / name, "other");
  }
  save(file, "running", 1, 1, "has ended since");
  save(file, "running", 77, 1, "of no trial");
  save(file, "finished", 5, 2, "the best");
  save(file, "finished", 0, 3, "ahead of the table");
  const Backup backup = back_up(file, copy, kNone);
  CHECK(backup.states == 2);
  SystemFiles files;
  Checkpoints running(files, checkpoint_folder(copy, "s") / "running");
  Checkpoints finished(files, checkpoint_folder(copy, "s") / "finished");
  CHECK(running.trials() == std::vector<int>{3});
  CHECK(running.load(3)->epoch == 1);
  CHECK(finished.trials() == std::vector<int>{5});
  CHECK(finished.load(5)->bytes.size() == std::string("the best").size());
}

TEST_CASE("backup: of a trial that goes on from a copy, no state of before it", "[backup]") {
  const TempFolder folder;
  const fs::path file = folder / "s.db", copy = folder / "copy.db";
  write_store(file);
  const auto copied_after = [&](int trial, int epoch) {
    Changes changes;
    changes.copies = {{trial, {epoch, 0, params_of(0)}}};
    SqliteStore::open(file, Mode::kReadWrite).commit("s", changes);
  };
  const int epoch = GENERATE(1, 2);  // the table has two of trial 3
  copied_after(3, epoch);
  save(file, "copied", 3, epoch, "the copy");
  save(file, "running", 3, 1, "before");
  SECTION("beside the copy") {}
  SECTION("the copy is gone since") { fs::remove_all(checkpoint_folder(file, "s") / "copied"); }
  SECTION("and trained on") { save(file, "running", 3, 2, "after"); }
  const bool has_copy = fs::exists(checkpoint_folder(file, "s") / "copied");
  const bool goes_on = names_in(checkpoint_folder(file, "s") / "running").size() == 2 && epoch == 1;
  (void)back_up(file, copy, kNone);
  SystemFiles files;
  StudyStates states(files, checkpoint_folder(copy, "s"));
  CHECK(states.of(StateKind::kCopied).trials().size() == (has_copy ? 1U : 0U));
  CHECK(states.of(StateKind::kRunning).trials().size() == (goes_on ? 1U : 0U));
  CHECK(SqliteStore::open(copy, Mode::kReadOnly).trials("s")[3].copies.size() == 1);
}

TEST_CASE("backup: whichever write fails, nothing is left, and the same call succeeds later", "[backup]") {
  const TempFolder folder;
  const fs::path file = folder / "s.db", copy = folder / "copy.db";
  write_store(file);
  save(file, "running", 3, 2, "state");
  const std::vector<std::string> before = names_in(folder.path());
  FaultyDisk disk;
  int failed = 0;
  for (int n = 1;; ++n) {
    disk.fail_at(n, n % 2 == 0 ? SQLITE_FULL : SQLITE_IOERR_WRITE, true);
    try {
      (void)back_up(file, copy, kNone);
      break;
    } catch (const Error& error) {
      INFO(n << ": " << error.what());
      CHECK((error.kind() == ErrorKind::kStorage));
      ++failed;
    }
    CHECK(names_in(folder.path()) == before);
  }
  disk.fail_at(0, 0, false);
  CHECK(failed > 3);
  check_equal(SqliteStore::open(copy, Mode::kReadOnly).trials("s"), sample_trials());
}

TEST_CASE("backup: a copy of a store that others write to all the time is one moment of it", "[backup]") {
  const TempFolder folder;
  const fs::path file = folder / "s.db";
  {
    SqliteStore store = SqliteStore::open(file, Mode::kCreate);
    write_sample(store, "s");
    Changes many;  // more than a few steps of pages
    for (int epoch = 3; epoch < 12'000; ++epoch) many.epochs.push_back({3, {epoch, {{"train_loss", 0.5}}}, 0.5});
    store.commit("s", many);
  }
  std::atomic<int> written{1};
  std::jthread writer([&](const std::stop_token& stop) {
    SqliteStore store = SqliteStore::open(file, Mode::kReadWrite);
    while (!stop.stop_requested()) {
      Changes changes;
      const int round = ++written;
      changes.rounds = {{round, 0, 3, 1, 0.5}};
      changes.occupancy = {{0, round, 0, 3, round}};
      store.commit("s", changes);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));  // a run leaves 200 between two commits
    }
  });
  for (int i = 0; i < 5; ++i) {
    const fs::path copy = folder / ("copy" + std::to_string(i));
    const int before = written;
    const Backup backup = back_up(file, copy, kNone);
    CHECK(backup.damage.empty());  // rounds and their slots agree
    CHECK(backup.rounds >= before);
    SqliteStore store = SqliteStore::open(copy, Mode::kReadWrite);  // walks the file
    CHECK(static_cast<int>(store.rounds("s").size()) == backup.rounds);
    CHECK(store.rounds("s").back().round == backup.rounds - 1);
  }
}

TEST_CASE("backup: a damaged store is copied, and told", "[backup]") {
  const TempFolder folder;
  const fs::path file = folder / "s.db";
  write_store(file);
  save(file, "running", 3, 2, "state");
  Connection(file, true, false).execute("UPDATE trial_values SET value = 0.5 WHERE trial_id = 1");
  const Backup backup = back_up(file, folder / "copy.db", kNone);
  REQUIRE(backup.damage.size() == 1);
  CHECK_THAT(backup.damage.front(), Catch::Contains("trial 0: damaged"));
  CHECK(backup.states == 1);
  write_file(file, read_file(file).substr(0, fs::file_size(file) / 2));
  CHECK_THROWS(back_up(file, folder / "copy2.db", kNone));
  CHECK_FALSE(fs::exists(folder / "copy2.db"));
}

}  // namespace
}  // namespace hfta::storage::testing
