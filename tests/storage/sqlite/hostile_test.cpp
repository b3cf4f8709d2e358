/// Stores that a stranger made: journals that would harm other files, schemas that compute, trees without end.
#include <unistd.h>

#include <chrono>
#include <cstdint>

#include "storage/sqlite/connection.hpp"
#include "storage/sqlite/plain_schema.hpp"
#include "storage/sqlite/sqlite_store.hpp"
#include "tests/storage/checks.hpp"
#include "tests/storage/samples.hpp"

namespace hfta::storage::testing {
namespace {

namespace fs = std::filesystem;
using Mode = SqliteStore::Mode;

std::string number(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}

const std::string kMagic = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7";

/// A rollback journal without pages, for a store that was so many pages long, that names a super-journal ("": none).
std::string journal(std::uint32_t pages, const std::string& super) {
  std::string bytes = kMagic + number(0) + number(0) + number(pages) + number(512) + number(4096);
  bytes.resize(512, '\0');
  if (super.empty()) return bytes;
  std::uint32_t sum = 0;
  for (const char c : super) sum += static_cast<std::uint32_t>(static_cast<signed char>(c));
  // The page with the lock byte, the name, its length and sum, the magic.
  return bytes + number(1 + 0x40000000 / 4096) + super + number(static_cast<std::uint32_t>(super.size())) +
         number(sum) + kMagic;
}

TEST_CASE("hostile: a journal that names another file is refused, by readers and writers, and no file is touched",
          "[hostile]") {
  const TempFolder folder;
  const fs::path file = folder / "s.db", victim = folder / "thesis.txt";
  write_store(file);
  write_file(victim, "three years of work");
  const std::string before = read_file(file);
  const auto pages = static_cast<std::uint32_t>(before.size() / 4096);
  const std::string bytes = journal(pages, victim.string());
  write_file(folder / "s.db-journal", bytes);
  for (const Mode mode : {Mode::kExamine, Mode::kReadOnly, Mode::kReadWrite, Mode::kCreate}) {
    check_refused("s.db-journal", "journal of several databases", [&] { (void)SqliteStore::open(file, mode); });
    check_refused("s.db-journal", "sqlite3 FILE '.backup COPY'", [&] { (void)SqliteStore::open_if_made(file, mode); });
  }
  CHECK(read_file(victim) == "three years of work");
  CHECK(read_file(file) == before);
  CHECK(read_file(folder / "s.db-journal") == bytes);
  // By another name of the store the journal is the same.
  fs::create_symlink(file, folder / "link.db");
  check_refused("s.db-journal", "journal of several",
                [&] { (void)SqliteStore::open(folder / "link.db", Mode::kReadOnly); });
  CHECK(fs::exists(victim));
}

TEST_CASE("hostile: a journal that is a link, and one that makes the store gigabytes long, are refused", "[hostile]") {
  const TempFolder folder;
  const fs::path file = folder / "s.db", beside = folder / "s.db-journal", victim = folder / "thesis.txt";
  write_store(file);
  const std::string before = read_file(file);
  write_file(victim, journal(1, ""));
  for (const char* ending : {"-journal", "-wal", "-shm"}) {
    const fs::path link = file.string() + ending;
    fs::create_symlink(victim, link);
    check_refused(link, "found a link", [&] { (void)SqliteStore::open(file, Mode::kReadOnly); });
    fs::remove(link);
  }
  CHECK(read_file(victim) == journal(1, ""));
  write_file(beside, journal(0x7fffffff, ""));
  check_refused(beside, "bytes long", [&] { (void)SqliteStore::open(file, Mode::kReadOnly); });
  CHECK(read_file(file) == before);
  // What a killed process leaves before it changed a page.
  write_file(beside, journal(static_cast<std::uint32_t>(before.size() / 4096), ""));
  check_equal(SqliteStore::open(file, Mode::kReadOnly).trials("s"), sample_trials());
}

TEST_CASE("hostile: a schema that computes is refused before anything is computed", "[hostile]") {
  struct Case {
    const char* sql;
    const char* words;
  };
  const Case cases[] = {
      {"PRAGMA foreign_keys=OFF; DROP TABLE trials; CREATE VIEW trials AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL "
       "SELECT i + 1"
       " FROM n) SELECT i AS trial_id, i AS number, 1 AS study_id, 'RUNNING' AS state, '' AS datetime_start,"
       " '' AS datetime_complete FROM n",
       "a view"},
      {"CREATE VIEW harmless AS SELECT 1", "a view"},
      {"ALTER TABLE studies ADD COLUMN big TEXT AS (hex(zeroblob(100000000)))", "a generated column"},
      {"CREATE TABLE extra (a, b GENERATED ALWAYS AS (a * 2) VIRTUAL)", "a generated column"},
      {"CREATE TABLE extra (a CHECK (length(hex(zeroblob(1000000))) > 0))", "'length' in a rule"},
      {"CREATE TABLE extra (a DEFAULT (hex(zeroblob(1000000))))", "'hex' in a rule"},
      {"CREATE TABLE extra (a CHECK (a LIKE '%a%b%'))", "'like' in a rule"},
      {"CREATE TRIGGER spy AFTER INSERT ON trials BEGIN DELETE FROM studies; END", "a trigger"},
      {"DROP TRIGGER hfta_forget_lease; CREATE TRIGGER hfta_forget_lease AFTER DELETE ON studies BEGIN"
       " DELETE FROM trials; END",
       "a trigger"},
      {"CREATE INDEX costly ON trials (hex(state))", "an index"},
      {"CREATE INDEX part ON trials (state) WHERE state = 'RUNNING'", "an index"},
  };
  for (const Case& c : cases) {
    INFO(c.sql);
    const TempFolder folder;
    const fs::path file = folder / "s.db";
    write_store(file);
    Connection(file, true, false).execute(c.sql);
    const std::string before = read_file(file);
    for (const Mode mode : {Mode::kExamine, Mode::kReadOnly, Mode::kReadWrite, Mode::kCreate}) {
      check_refused(file, c.words, [&] { (void)SqliteStore::open(file, mode).trials("s"); });
    }
    CHECK(read_file(file) == before);
  }
}

TEST_CASE("hostile: plain tables that we do not know do no harm", "[hostile]") {
  const TempFolder folder;
  const fs::path file = folder / "s.db";
  write_store(file);
  Connection(file, true, false)
      .execute(
          "CREATE TABLE notes (id INTEGER PRIMARY KEY, \"as\" TEXT DEFAULT 'hex(1)', price NUMERIC(10, 2) CHECK (price "
          ">"
          " 0 AND (price < 5 OR price IN (7, 8)))); -- as\n"
          "CREATE INDEX of_notes ON notes (\"as\" COLLATE NOCASE, price DESC); ANALYZE");
  check_equal(SqliteStore::open(file, Mode::kReadOnly).trials("s"), sample_trials());
  SqliteStore store = SqliteStore::open(file, Mode::kReadWrite);
  write_sample(store, "other");
}

TEST_CASE("hostile: SQL is taken apart into words", "[hostile]") {
  using Words = std::vector<std::string>;
  CHECK(sql_words("CREATE TABLE \"a b\"\"c\" (x INT, -- as\n y /* generated */ CHECK(y<>'it''s'))") ==
        Words{"create", "table", "\"a b\"\"c\"", "(", "x", "int", ",", "y", "check", "(", "y", "<", ">", "\"it''s'",
              ")", ")"});
  CHECK(sql_words("[as] `as`").size() == 2);
  CHECK(sql_words("'open") == Words{"\"open"});
  CHECK(sql_words("/* open").empty());
}

TEST_CASE("hostile: texts in the store that are JSON without end are refused", "[hostile]") {
  const TempFolder folder;
  const fs::path file = folder / "s.db";
  write_store(file);
  const std::string deep(1'000'000, '[');
  Connection connection(file, true, false);
  connection.query("UPDATE trial_params SET distribution_json = ?1 WHERE param_id = 1").bind(deep).run();
  const std::string choices = R"({"name": "CategoricalDistribution", "attributes": {"choices": [)" + deep;
  check_refused(file, "levels deep", [&] { (void)SqliteStore::open(file, Mode::kReadOnly).trials("s"); });
  connection.query("UPDATE trial_params SET distribution_json = ?1 WHERE param_id = 1").bind(choices).run();
  check_refused(file, "levels deep", [&] { (void)SqliteStore::open(file, Mode::kReadOnly).trials("s"); });
}

TEST_CASE("hostile: a statement that asks for more than the file can hold is broken off", "[hostile]") {
  const TempFolder folder;
  const fs::path file = folder / "s.db";
  write_store(file);
  Connection connection(file, false, false);
  {
    Query rows = connection.query("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n");
    check_refused(file, "made to do harm", [&] {
      while (rows.next()) {
      }
    });
  }
  Query steps =
      connection.query("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n");
  check_refused(file, "made to do harm", [&] { (void)steps.next(); });
  Query text = connection.query("SELECT zeroblob(1000000000)");
  check_refused(file, "too big", [&] { (void)text.next(); });
}

}  // namespace
}  // namespace hfta::storage::testing
