#include "storage/sqlite/schema.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "storage/sqlite/optuna_tables.hpp"
#include "storage/sqlite/plain_schema.hpp"

namespace hfta::storage {
namespace {

// Ids are Optuna's study_id and trial_id. SQLite gives the ids of deleted rows away again, and Optuna's programs delete
// studies without knowing of our tables: the triggers forget our rows with them, whichever program deletes.
// This is schema 1; a new store is made of it and of every migration.
constexpr const char* kFirstTables = R"sql(
CREATE TABLE hfta_meta (
  id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1), schema_version INTEGER NOT NULL, library_version TEXT NOT NULL);
CREATE TABLE hfta_studies (
  study_id INTEGER NOT NULL PRIMARY KEY REFERENCES studies (study_id), metric TEXT NOT NULL, config TEXT NOT NULL,
  config_json TEXT NOT NULL, space_json TEXT NOT NULL, run_caps_json TEXT NOT NULL, library_version TEXT NOT NULL);
CREATE TABLE hfta_trials (
  trial_id INTEGER NOT NULL PRIMARY KEY REFERENCES trials (trial_id),
  study_id INTEGER NOT NULL REFERENCES studies (study_id), draw INTEGER NOT NULL, reason TEXT NOT NULL DEFAULT '',
  exact_json TEXT, UNIQUE (study_id, draw));
CREATE TABLE hfta_epoch_metrics (
  trial_id INTEGER NOT NULL REFERENCES trials (trial_id), epoch INTEGER NOT NULL, name TEXT NOT NULL, value REAL,
  value_type TEXT NOT NULL CHECK (value_type IN ('FINITE', 'INF_POS', 'INF_NEG', 'NAN')),
  PRIMARY KEY (trial_id, epoch, name)) WITHOUT ROWID;
CREATE TABLE hfta_test_metrics (
  trial_id INTEGER NOT NULL REFERENCES trials (trial_id), name TEXT NOT NULL, value REAL,
  value_type TEXT NOT NULL CHECK (value_type IN ('FINITE', 'INF_POS', 'INF_NEG', 'NAN')),
  PRIMARY KEY (trial_id, name)) WITHOUT ROWID;
CREATE TABLE hfta_arrays (
  study_id INTEGER NOT NULL REFERENCES studies (study_id), array INTEGER NOT NULL, device TEXT NOT NULL,
  partition TEXT NOT NULL, width INTEGER NOT NULL, chunk INTEGER NOT NULL, threads INTEGER NOT NULL,
  choices_json TEXT NOT NULL, PRIMARY KEY (study_id, array)) WITHOUT ROWID;
CREATE TABLE hfta_rounds (
  study_id INTEGER NOT NULL REFERENCES studies (study_id), round INTEGER NOT NULL, array INTEGER NOT NULL,
  width INTEGER NOT NULL, occupied INTEGER NOT NULL, seconds REAL NOT NULL,
  PRIMARY KEY (study_id, round, array)) WITHOUT ROWID;
CREATE TABLE hfta_occupancy (
  study_id INTEGER NOT NULL REFERENCES studies (study_id), round INTEGER NOT NULL, array INTEGER NOT NULL,
  slot INTEGER NOT NULL, trial_id INTEGER NOT NULL REFERENCES trials (trial_id), epoch INTEGER NOT NULL,
  PRIMARY KEY (study_id, round, array, slot)) WITHOUT ROWID;
CREATE TRIGGER hfta_forget_trial AFTER DELETE ON trials BEGIN
  DELETE FROM hfta_epoch_metrics WHERE trial_id = old.trial_id;
  DELETE FROM hfta_test_metrics WHERE trial_id = old.trial_id;
  DELETE FROM hfta_occupancy WHERE study_id = old.study_id AND trial_id = old.trial_id;
  DELETE FROM hfta_trials WHERE trial_id = old.trial_id;
END;
CREATE TRIGGER hfta_forget_study AFTER DELETE ON studies BEGIN
  DELETE FROM hfta_occupancy WHERE study_id = old.study_id;
  DELETE FROM hfta_rounds WHERE study_id = old.study_id;
  DELETE FROM hfta_arrays WHERE study_id = old.study_id;
  DELETE FROM hfta_trials WHERE study_id = old.study_id;
  DELETE FROM hfta_studies WHERE study_id = old.study_id;
END;
)sql";

// Entry i leads from schema i + 1 to the next. A lease is taken before its study is made, so it goes by the name.
constexpr const char* kMigrations[] = {R"sql(
CREATE TABLE hfta_leases (
  study_name TEXT NOT NULL PRIMARY KEY, fence INTEGER NOT NULL, token TEXT NOT NULL, holder TEXT NOT NULL);
CREATE TRIGGER hfta_forget_lease AFTER DELETE ON studies BEGIN
  DELETE FROM hfta_leases WHERE study_name = old.study_name;
END;
)sql",
                                       R"sql(
CREATE TABLE hfta_home (id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1), path TEXT NOT NULL);
)sql",
                                       // Rounds in which a deleted trial sat are not what was written any more.
                                       R"sql(
ALTER TABLE hfta_studies ADD COLUMN digest INTEGER;
ALTER TABLE hfta_trials ADD COLUMN digest INTEGER;
ALTER TABLE hfta_trials ADD COLUMN end_digest INTEGER;
ALTER TABLE hfta_arrays ADD COLUMN digest INTEGER;
ALTER TABLE hfta_rounds ADD COLUMN digest INTEGER;
DROP TRIGGER hfta_forget_trial;
CREATE TRIGGER hfta_forget_trial AFTER DELETE ON trials BEGIN
  UPDATE hfta_rounds SET digest = NULL WHERE study_id = old.study_id AND (round, array) IN (
    SELECT round, array FROM hfta_occupancy WHERE study_id = old.study_id AND trial_id = old.trial_id);
  DELETE FROM hfta_epoch_metrics WHERE trial_id = old.trial_id;
  DELETE FROM hfta_test_metrics WHERE trial_id = old.trial_id;
  DELETE FROM hfta_occupancy WHERE study_id = old.study_id AND trial_id = old.trial_id;
  DELETE FROM hfta_trials WHERE trial_id = old.trial_id;
END;
)sql"};
static_assert(std::size(kMigrations) == kNewestSchema - 1);

// Optuna's tables that are read and written; its others (heartbeats, artifacts, ...) may be absent.
constexpr const char* kNeeded[] = {
    "studies",      "study_directions", "study_system_attributes",   "trials",
    "trial_params", "trial_values",     "trial_intermediate_values", "trial_system_attributes"};

[[noreturn]] void refuse(const Connection& connection, const std::string& what) {
  throw Error(ErrorKind::kStorage, printable(connection.path().string()) + ": " + what);
}

/// The triggers that any of our schemas creates.
const std::set<std::vector<std::string>>& our_triggers() {
  static const std::set<std::vector<std::string>> triggers = [] {
    std::set<std::vector<std::string>> found;
    const std::string_view begin = "CREATE TRIGGER", end = "END;";
    std::vector<std::string_view> scripts = {kFirstTables};
    scripts.insert(scripts.end(), std::begin(kMigrations), std::end(kMigrations));
    for (const std::string_view sql : scripts) {
      for (std::size_t at = sql.find(begin); at != sql.npos; at = sql.find(begin, at + 1)) {
        const std::string_view trigger = sql.substr(at, sql.find(end, at) + end.size() - 1 - at);  // without its ';'
        found.insert(sql_words(trigger));
      }
    }
    return found;
  }();
  return triggers;
}

std::set<std::string> tables_of(Connection& connection) {
  std::set<std::string> names;
  Query query = connection.query("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'");
  while (query.next()) names.insert(query.text(0));
  return names;
}

/// Whether there are some of Optuna's tables and nothing else.
bool is_half_made(const std::set<std::string>& tables) {
  static const std::set<std::string> optunas = [] {
    const std::vector<std::string> words = sql_words(kOptunaTables);
    std::set<std::string> names;
    for (std::size_t i = 0; i + 2 < words.size(); ++i) {
      if (words[i] == "create" && words[i + 1] == "table") names.insert(words[i + 2]);
    }
    return names;
  }();
  return !tables.empty() && std::includes(optunas.begin(), optunas.end(), tables.begin(), tables.end()) &&
         !std::all_of(std::begin(kNeeded), std::end(kNeeded), [&](const char* name) { return tables.contains(name); });
}

/// Optuna makes each table in a transaction of its own. While another program is making them, this waits for it.
std::set<std::string> settled_tables(Connection& connection) {
  constexpr int kMilliseconds = 50, kMostWaits = 20;  // waits without a new table
  std::set<std::string> tables = tables_of(connection);
  for (int waits = 0; waits < kMostWaits && is_half_made(tables); ++waits) {
    sqlite3_sleep(kMilliseconds);
    std::set<std::string> later = tables_of(connection);
    if (later.size() > tables.size()) waits = 0;
    tables = std::move(later);
  }
  return tables;
}

void check_optuna(Connection& connection, const std::set<std::string>& tables) {
  for (const char* needed : kNeeded) {
    if (!tables.contains(needed)) {
      refuse(connection, fmt::format("not a study: found an SQLite database without Optuna's table '{}'", needed));
    }
  }
  if (!tables.contains("alembic_version")) return;  // Optuna stamps the file when it opens it next
  Query query = connection.query("SELECT version_num FROM alembic_version");
  if (!query.next() || query.view(0) == kOptunaRevision) return;
  refuse(connection, fmt::format("found Optuna tables of revision {}, wanted {} (Optuna 3.2 to 5.0); for an older one "
                                 "run: optuna storage upgrade --storage sqlite:///{}",
                                 printable(query.view(0)), kOptunaRevision, connection.path().string()));
}

/// Checks hfta_meta and returns the schema's number.
int check_hfta(Connection& connection) {
  Query query = connection.query("SELECT schema_version, library_version FROM hfta_meta WHERE id = 1");
  if (!query.next())
    refuse(connection, "damaged: the table hfta_meta is empty, wanted one row with the schema's number");
  const std::int64_t found = query.integer(0);
  if (found > kNewestSchema) {
    refuse(connection, fmt::format("found store schema {} (written by hfta-tune {}), wanted at most {}: use that or a "
                                   "newer hfta-tune",
                                   found, printable(query.view(1)), kNewestSchema));
  }
  if (found < 1)
    refuse(connection, fmt::format("damaged: found store schema {}, wanted 1 to {}", found, kNewestSchema));
  return static_cast<int>(found);
}

}  // namespace

Contents inspect(Connection& connection) {
  check_plain(connection, our_triggers());
  const std::set<std::string> tables = settled_tables(connection);
  if (tables.empty()) return Contents::kEmpty;
  check_optuna(connection, tables);
  if (!tables.contains("hfta_meta")) return Contents::kOptuna;
  return check_hfta(connection) < kNewestSchema ? Contents::kEarlier : Contents::kHfta;
}

void complete_tables(Connection& connection) {
  Transaction transaction(connection, Transaction::Kind::kWrite);
  const Contents found = inspect(connection);  // again, under the lock: another process may have been first
  if (found == Contents::kHfta) return;
  if (found == Contents::kEmpty) connection.execute(kOptunaTables);
  int version = 1;
  if (found == Contents::kEarlier) {
    version = check_hfta(connection);
    std::filesystem::path copy = connection.path();
    // The copy needs a connection of its own: SQLite copies nothing in a transaction that may write.
    Connection(connection.path(), false, false).copy_to(copy += fmt::format(".schema-{}", version));
  } else {
    connection.execute(kFirstTables);
  }
  for (; version < kNewestSchema; ++version) connection.execute(kMigrations[version - 1]);
  connection.query("INSERT OR REPLACE INTO hfta_meta VALUES (1, ?1, ?2)").bind(kNewestSchema, HFTA_VERSION).run();
  transaction.commit();
}

}  // namespace hfta::storage
