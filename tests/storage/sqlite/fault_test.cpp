/// A round is on the disk whole or not at all: full disks, failing disks, killed processes, other programs.
#include <sqlite3.h>

#include <atomic>
#include <thread>

#include "storage/sqlite/connection.hpp"
#include "storage/sqlite/sqlite_store.hpp"
#include "tests/storage/checks.hpp"
#include "tests/storage/samples.hpp"
#include "tests/storage/sqlite/fault_vfs.hpp"

namespace hfta::storage::testing {
namespace {

namespace fs = std::filesystem;
using Mode = SqliteStore::Mode;

/// The sample before its second round.
void write_half(const fs::path& file) {
  SqliteStore store = SqliteStore::open(file, Mode::kCreate);
  store.create(sample_study("s"));
  std::vector<NewTrial> added;
  for (int trial = 0; trial < kSampleTrials; ++trial) added.push_back({params_of(trial)});
  (void)store.add_trials("s", added, at(0));
  store.commit("s", sample_round(0));
}

/// Every row of the store as text, in order: equal before and after what must leave nothing behind.
std::string rows_of(const fs::path& file) {
  Connection connection(file, false, false);
  std::string all;
  std::vector<std::string> tables;
  {
    Query query = connection.query("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name");
    while (query.next()) tables.push_back(query.text(0));
  }
  for (const std::string& table : tables) {
    std::vector<std::string> columns;
    Query names = connection.query("SELECT name FROM pragma_table_info(?1)");
    names.bind(table);
    std::string list;
    while (names.next()) list += "|| ',' || quote(\"" + names.text(0) + "\")";
    const std::string sql = "SELECT ''" + list + " FROM \"" + table + "\" ORDER BY 1";
    Query rows = connection.query(sql.c_str());
    while (rows.next()) all += table + rows.text(0) + "\n";
  }
  return all;
}

struct Operation {
  const char* name;
  void (*run)(Store&);
};

const Operation kOperations[] = {{"commit", [](Store& store) { store.commit("s", sample_round(1)); }},
                                 {"add_trials",
                                  [](Store& store) {
                                    (void)store.add_trials("s", {{params_of(1)}, {params_of(2)}}, at(40));
                                  }},
                                 {"create", [](Store& store) { store.create(sample_study("other")); }},
                                 {"update", [](Store& store) {
                                    StudyRecord study = sample_study("s");
                                    study.run_caps = {3, 6, 9};
                                    store.update(study);
                                  }}};

struct Fault {
  int code;
  bool for_ever;
  const char* words;
};

TEST_CASE("fault: whichever write fails, nothing of the round stays, and the same call succeeds later", "[fault]") {
  const Fault fault = GENERATE(values<Fault>({{SQLITE_FULL, false, "disk full"},
                                              {SQLITE_FULL, true, "disk full"},
                                              {SQLITE_IOERR_WRITE, true, "could not be read or written"},
                                              {SQLITE_IOERR_FSYNC, false, "could not be read or written"}}));
  FaultyDisk disk;
  for (const Operation& operation : kOperations) {
    INFO(operation.name);
    disk.fail_at(0, SQLITE_OK, false);
    const TempFolder folder;
    const fs::path file = folder / "s.db";
    write_half(file);
    const std::string before = rows_of(file);
    int failed = 0;
    {
      SqliteStore store = SqliteStore::open(file, Mode::kReadWrite);
      for (int n = 1;; ++n) {
        REQUIRE(n < 1000);
        INFO("change " << n << " of the disk fails");
        disk.fail_at(n, fault.code, fault.for_ever);
        try {
          operation.run(store);
          // A failure after the commit (deleting the journal is the commit) must have been reported too.
          if (disk.changes() < n) break;
          FAIL("the disk failed and nobody said so");
        } catch (const Error& error) {
          CHECK((error.kind() == ErrorKind::kStorage));
          CHECK_THAT(error.what(), Catch::Contains("s.db") && Catch::Contains(fault.words));
        }
        ++failed;
        disk.fail_at(0, SQLITE_OK, false);
        CHECK(rows_of(file) == before);
      }
    }
    disk.fail_at(0, SQLITE_OK, false);
    CHECK(failed > 5);
    CHECK(rows_of(file) != before);
    SqliteStore again = SqliteStore::open(file, Mode::kReadWrite);  // with its quick check
    if (std::string(operation.name) == "commit") check_equal(again.trials("s"), sample_trials());
  }
}

TEST_CASE("fault: a process killed at any write leaves the state before or after", "[fault]") {
  FaultyDisk disk;
  for (const Operation& operation : kOperations) {
    INFO(operation.name);
    const TempFolder folder;
    const fs::path file = folder / "s.db";
    write_half(file);
    const std::string before = rows_of(file);
    {
      SqliteStore store = SqliteStore::open(file, Mode::kReadWrite);
      disk.observe([&](int n) {
        const fs::path crash = folder / ("crash" + std::to_string(n));
        fs::create_directory(crash);
        for (const char* name : {"s.db", "s.db-journal"}) {
          if (fs::exists(folder / name)) fs::copy_file(folder / name, crash / name);
        }
      });
      operation.run(store);
    }
    const int changes = disk.changes();
    disk.observe(nullptr);
    const std::string after = rows_of(file);
    REQUIRE(changes > 5);
    int hot = 0;
    for (int n = 1; n <= changes; ++n) {
      INFO("killed before change " << n);
      const fs::path left = folder / ("crash" + std::to_string(n)) / "s.db";
      hot += fs::exists(left.string() + "-journal") ? 1 : 0;
      const Mode mode = n % 2 == 0 ? Mode::kReadOnly : Mode::kReadWrite;
      CHECK(SqliteStore::open(left, mode).trials("s").size() >= kSampleTrials);
      const std::string found = rows_of(left);
      CHECK((found == before || found == after));
    }
    CHECK(hot > 3);
  }
}

TEST_CASE("fault: a store that could not be created can be created later", "[fault]") {
  FaultyDisk disk;
  const TempFolder folder;
  const fs::path file = folder / "new.db";
  for (int n = 1;; ++n) {
    REQUIRE(n < 1000);
    INFO("change " << n << " of the disk fails");
    disk.fail_at(n, SQLITE_FULL, true);
    bool made = true;
    try {
      (void)SqliteStore::open(file, Mode::kCreate);
    } catch (const Error& error) {
      made = false;
      CHECK_THAT(error.what(), Catch::Contains("new.db") && Catch::Contains("disk full"));
    }
    disk.fail_at(0, SQLITE_OK, false);
    if (made) break;
    // What is left is no study, but kCreate can use it.
    if (fs::exists(file)) check_refused(file, "not a study", [&] { (void)SqliteStore::open(file, Mode::kReadOnly); });
    if (n % 5 == 0) fs::remove(file);
  }
  SqliteStore store = SqliteStore::open(file, Mode::kReadWrite);
  write_sample(store, "s");
  check_equal(store.trials("s"), sample_trials());
}

TEST_CASE("fault: a process killed at any write of the store's making leaves one that is begun anew, or goes on",
          "[fault]") {
  FaultyDisk disk;
  const TempFolder folder;
  const fs::path file = folder / "new.db";
  disk.observe([&](int n) {
    const fs::path crash = folder / ("crash" + std::to_string(n));
    fs::create_directory(crash);
    for (const char* name : {"new.db", "new.db-journal"}) {
      if (fs::exists(folder / name)) fs::copy_file(folder / name, crash / name);
    }
  });
  {
    SqliteStore store = SqliteStore::open(file, Mode::kCreate);
    store.create(sample_study("first"));
  }
  const int changes = disk.changes();
  disk.observe(nullptr);
  int filled_but_not_made = 0, made = 0;
  for (int n = 1; n <= changes; ++n) {
    INFO("killed before change " << n);
    const fs::path left = folder / ("crash" + std::to_string(n)) / "new.db";
    const bool has_bytes = fs::exists(left) && fs::file_size(left) > 0;
    const Mode mode = n % 2 == 0 ? Mode::kReadOnly : Mode::kReadWrite;
    std::optional<SqliteStore> store = SqliteStore::open_if_made(left, mode);
    filled_but_not_made += has_bytes && !store ? 1 : 0;
    made += store ? 1 : 0;
    store = SqliteStore::open(left, Mode::kCreate);
    if (!store->find("first")) store->create(sample_study("first"));
    write_sample(*store, "s");
    check_equal(store->trials("s"), sample_trials());
  }
  CHECK(filled_but_not_made > 3);
  CHECK(made > 3);
}

TEST_CASE("fault: a rule of the schema that breaks half-way takes the round back", "[fault]") {
  const TempFolder folder;
  const fs::path file = folder / "s.db";
  write_half(file);
  const std::string before = rows_of(file);
  SqliteStore store = SqliteStore::open(file, Mode::kReadWrite);
  Connection(file, true, false)
      .execute("CREATE TRIGGER hfta_test AFTER INSERT ON hfta_test_metrics BEGIN SELECT RAISE(ABORT, 'no'); END");
  check_refused(file, "no", [&] { store.commit("s", sample_round(1)); });
  CHECK(rows_of(file) == before);
  Connection(file, true, false).execute("DROP TRIGGER hfta_test");
  store.commit("s", sample_round(1));
  check_equal(store.trials("s"), sample_trials());
}

TEST_CASE("fault: a file that is moved or removed in the middle is noticed", "[fault]") {
  const TempFolder folder;
  const fs::path file = folder / "s.db";
  write_half(file);
  SqliteStore store = SqliteStore::open(file, Mode::kReadWrite);
  fs::rename(file, folder / "elsewhere.db");
  check_refused(file, "moved or removed", [&] { store.commit("s", sample_round(1)); });
  fs::rename(folder / "elsewhere.db", file);
  store.commit("s", sample_round(1));
  check_equal(store.trials("s"), sample_trials());
}

TEST_CASE("fault: a writer waits for another program's transaction", "[fault]") {
  const TempFolder folder;
  const fs::path file = folder / "s.db";
  write_half(file);
  Connection other(file, true, false);
  other.execute("BEGIN EXCLUSIVE");
  std::thread release([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    other.execute("COMMIT");
  });
  SqliteStore store = SqliteStore::open(file, Mode::kReadWrite);
  store.commit("s", sample_round(1));
  release.join();
  check_equal(store.trials("s"), sample_trials());
}

TEST_CASE("fault: a reader always sees whole rounds while another connection commits", "[fault]") {
  const TempFolder folder;
  const fs::path file = folder / "s.db";
  constexpr int kTrials = 8, kRounds = 60, kReads = 3;  // and as many rounds more as the reader needs for its reads
  SqliteStore writer = SqliteStore::open(file, Mode::kCreate);
  writer.create(sample_study("s"));
  (void)writer.add_trials("s", std::vector<NewTrial>(kTrials, {params_of(0)}), at(0));
  std::atomic<bool> written = false;
  std::atomic<int> reads = 0;
  std::size_t rounds = 0;
  std::thread writing([&] {
    for (int round = 1; round <= kRounds || reads < kReads; ++round) {
      Changes changes;
      for (int trial = 0; trial < kTrials; ++trial) {
        changes.epochs.push_back({trial, {round, {{"train_loss", 1.0 / round}, {"val_accuracy", round}}}, round});
        changes.occupancy.push_back({0, round, trial, trial, round});
      }
      changes.rounds = {{round, 0, kTrials, kTrials, 0.01}};
      writer.commit("s", changes);
      ++rounds;
    }
    written = true;
  });
  SqliteStore reader = SqliteStore::open(file, Mode::kReadOnly);
  std::size_t seen = 0;
  int broken = 0;
  for (bool last = false; !last;) {
    last = written;  // asked before reading: the last look sees every round
    const auto trials = reader.trials("s");
    ++reads;
    const std::size_t epochs = trials.at(0).epochs.size();
    for (const trials::Trial& trial : trials) broken += trial.epochs.size() == epochs ? 0 : 1;
    broken += epochs < seen ? 1 : 0;
    seen = epochs;
  }
  writing.join();
  CHECK(seen == rounds);
  CHECK(broken == 0);
}

}  // namespace
}  // namespace hfta::storage::testing
