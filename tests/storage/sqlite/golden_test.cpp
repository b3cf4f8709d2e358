/// Stores that earlier programs wrote: Optuna itself, and every schema of ours.
#include <limits>

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
using trials::State;

fs::path golden(const TempFolder& folder, const std::string& name) {
  const fs::path file = folder / "golden.db";
  Connection connection(file, true, true);
  connection.execute("PRAGMA foreign_keys=OFF");  // a dump is in order of names
  connection.execute(read_file(hfta::testing::source_folder() / "tests/storage/sqlite/golden" / name).c_str());
  return file;
}

/// Name and columns (name, type, NOT NULL, key) of every table, index and trigger whose name fits `pattern`.
std::vector<std::string> layout(const fs::path& file, const std::string& pattern) {
  Connection connection(file, false, false);
  std::vector<std::string> lines;
  const std::string sql =
      "SELECT m.type || ' ' || m.name || ' ' || coalesce(c.name || ' ' || c.type || c.\"notnull\" || c.pk, '') FROM"
      " sqlite_master m LEFT JOIN pragma_table_info(m.name) c WHERE m.name " +
      pattern + " ORDER BY 1";
  Query query = connection.query(sql.c_str());
  while (query.next()) lines.push_back(query.text(0));
  return lines;
}

TEST_CASE("golden: a study that Optuna made is read whole", "[golden]") {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();
  const TempFolder folder;
  const fs::path file = golden(folder, "optuna-5.0.sql");
  const std::string before = read_file(file);
  SqliteStore store = SqliteStore::open(file, Mode::kReadOnly);
  auto found = store.trials("golden");
  REQUIRE(found.size() == 8);
  CHECK(found[0].started.has_value());
  CHECK(found[6].started.has_value());
  CHECK_FALSE(found[6].completed.has_value());
  CHECK_FALSE(found[7].started.has_value());

  const trials::ParamValue choices[] = {std::string("sgd"),        std::monostate{}, true, std::int64_t{3}, 3.5,
                                        std::string("w\xc3\xb6rd")};
  std::vector<trials::Trial> wanted(8);
  for (int k = 0; k < 8; ++k) {
    auto& trial = wanted[static_cast<std::size_t>(k)];
    trial.number = k;
    trial.started = found[static_cast<std::size_t>(k)].started;
    trial.completed = found[static_cast<std::size_t>(k)].completed;
    if (k >= 6) continue;
    trial.params = {{"lr", 1e-5 * (1 << k)},
                    {"momentum", 0.1 * k},
                    {"batch", std::int64_t{16} * (k + 1)},
                    {"width", std::int64_t{8} + k},
                    {"opt", choices[k]}};
  }
  const State states[] = {State::kComplete, State::kPruned, State::kFail,    State::kComplete,
                          State::kComplete, State::kPruned, State::kRunning, State::kWaiting};
  for (std::size_t k = 0; k < 8; ++k) wanted[k].state = states[k];
  wanted[0].values = {0.75};
  wanted[1].values = {0.25};
  wanted[3].values = {kInfinity};
  wanted[4].values = {0.875};
  const auto epoch = [](int step, double value) { return trials::EpochRecord{step, {{"val_accuracy", value}}}; };
  wanted[0].epochs = {epoch(1, 0.5), epoch(2, 0.75)};
  wanted[1].epochs = {epoch(1, 0.25)};
  wanted[2].epochs = {epoch(1, kNaN)};
  wanted[3].epochs = {epoch(3, kInfinity), epoch(7, -kInfinity)};
  check_equal(found, wanted);

  const auto record = store.find("golden");
  REQUIRE(record);
  CHECK(record->config.empty());
  CHECK(record->space.empty());
  CHECK(record->objectives.front().metric == "val_accuracy");
  CHECK((record->objectives.front().goal == trials::Goal::kMaximize));
  CHECK(store.find("first")->objectives.front().metric == "value");
  CHECK(store.draws("golden").empty());
  CHECK(store.arrays("golden").empty());
  CHECK(store.rounds("golden").empty());
  CHECK(store.occupancy("golden").empty());
  const auto studies = store.studies();
  REQUIRE(studies.size() == 2);
  CHECK(studies[0].counts.empty());
  CHECK_FALSE(studies[0].best);
  CHECK(studies[1].counts ==
        std::map<std::string, int>{{"COMPLETE", 3}, {"PRUNED", 2}, {"FAIL", 1}, {"RUNNING", 1}, {"WAITING", 1}});
  CHECK(studies[1].best == kInfinity);  // as Study.best_value of Optuna
  CHECK(read_file(file) == before);
}

TEST_CASE("golden: our study goes beside Optuna's in its file", "[golden]") {
  const TempFolder folder;
  const fs::path file = golden(folder, "optuna-5.0.sql");
  const Mode mode = GENERATE(Mode::kCreate, Mode::kReadWrite);
  SqliteStore store = SqliteStore::open(file, mode);
  write_sample(store, "ours");
  check_equal(store.trials("ours"), sample_trials());
  CHECK(store.trials("golden").size() == 8);
  CHECK_THAT(message_of(ErrorKind::kStorage, [&] { store.update(sample_study("golden")); }),
             Catch::Contains("made by Optuna"));
}

TEST_CASE("golden: a new store has Optuna's very tables, and ours of this schema", "[golden]") {
  const TempFolder optunas, same, fresh;
  const fs::path file = fresh / "new.db";
  (void)SqliteStore::open(file, Mode::kCreate);
  const auto optuna_tables = layout(file, "NOT LIKE '%hfta%'");
  CHECK(optuna_tables.size() > 50);
  CHECK(optuna_tables == layout(golden(optunas, "optuna-5.0.sql"), "NOT LIKE '%hfta%'"));
  // If this fails, the schema has changed: raise kNewestSchema, add a migration and a golden file of the new number.
  CHECK(layout(file, "LIKE '%hfta%'") == layout(golden(same, "hfta-4.sql"), "LIKE '%hfta%'"));
  for (const char* name : {"hfta-1.sql", "hfta-2.sql", "hfta-3.sql"}) {
    const TempFolder lifted;
    const fs::path earlier = golden(lifted, name);
    (void)SqliteStore::open(earlier, Mode::kReadWrite);
    CHECK(layout(file, "LIKE '%hfta%'") == layout(earlier, "LIKE '%hfta%'"));
  }
}

TEST_CASE("golden: a store of any schema reads as it was written, and goes on", "[golden]") {
  struct Earlier {
    const char* name;
    std::optional<Lease> lease;
  };
  const Earlier earlier = GENERATE(Earlier{"hfta-1.sql", std::nullopt}, Earlier{"hfta-2.sql", sample_lease()},
                                   Earlier{"hfta-3.sql", sample_lease()}, Earlier{"hfta-4.sql", sample_lease()});
  INFO(earlier.name);
  const TempFolder folder;
  const fs::path file = golden(folder, earlier.name);
  const std::string before = read_file(file);
  {
    SqliteStore reader = SqliteStore::open(file, Mode::kReadOnly);
    check_equal(reader.trials("sample"), sample_trials());
    CHECK((reader.lease("sample") == earlier.lease));
  }
  CHECK(read_file(file) == before);
  SqliteStore store = SqliteStore::open(file, Mode::kReadWrite);
  CHECK(store.find("sample")->space.size() == every_kind().size());
  CHECK(store.occupancy("sample").size() == 9);
  CHECK((store.lease("sample") == earlier.lease));
  const auto taken = store.take_lease("sample", earlier.lease, "token", "holder");
  REQUIRE(taken);
  store.hold("sample", *taken);
  store.commit("sample", sample_round(1));
  check_equal(store.trials("sample"), sample_trials());
}

TEST_CASE("golden: an earlier schema is lifted whole or not at all", "[golden]") {
  FaultyDisk disk;
  const TempFolder folder;
  const fs::path file = golden(folder, "hfta-1.sql");
  const auto before = layout(file, "LIKE '%hfta%'");
  int failed = 0;
  for (bool lifted = false; !lifted; failed += lifted ? 0 : 1) {
    REQUIRE(failed < 1000);
    INFO("change " << failed + 1 << " of the disk fails");
    disk.fail_at(failed + 1, SQLITE_FULL, true);
    lifted = true;
    try {
      (void)SqliteStore::open(file, Mode::kReadWrite);
    } catch (const Error& error) {
      lifted = false;
      CHECK_THAT(error.what(), Catch::Contains("disk full"));
    }
    disk.fail_at(0, SQLITE_OK, false);
    if (!lifted) CHECK(layout(file, "LIKE '%hfta%'") == before);
  }
  CHECK(failed > 5);
  CHECK(layout(file, "= 'hfta_leases'").size() == 4);
  // What was lifted is still there as it was.
  const fs::path copy = file.string() + ".schema-1";
  CHECK(layout(copy, "LIKE '%hfta%'") == before);
  check_equal(SqliteStore::open(copy, Mode::kReadOnly).trials("sample"), sample_trials());
  check_equal(SqliteStore::open(file, Mode::kReadOnly).trials("sample"), sample_trials());
}

}  // namespace
}  // namespace hfta::storage::testing
