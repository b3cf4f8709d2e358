/// The queries of docs/storage.md run as they stand.
#include "storage/sqlite/connection.hpp"
#include "storage/sqlite/sqlite_store.hpp"
#include "tests/source_folder.hpp"
#include "tests/storage/checks.hpp"
#include "tests/storage/samples.hpp"

namespace hfta::storage::testing {
namespace {

std::vector<std::string> queries_of(const std::string& page) {
  std::vector<std::string> queries;
  const std::string begin = "```sql\n", end = "```";
  for (std::size_t at = page.find(begin); at != std::string::npos; at = page.find(begin, at)) {
    at += begin.size();
    queries.push_back(page.substr(at, page.find(end, at) - at));
  }
  return queries;
}

TEST_CASE("docs: every query of docs/storage.md gives rows", "[docs]") {
  const TempFolder folder;
  const auto file = folder / "s.db";
  {
    SqliteStore store = SqliteStore::open(file, SqliteStore::Mode::kCreate);
    write_sample(store, "s");
    write_front(store, "front");
  }
  const auto queries = queries_of(read_file(hfta::testing::source_folder() / "docs/storage.md"));
  CHECK(queries.size() >= 5);
  Connection connection(file, false, false);
  for (const std::string& sql : queries) {
    INFO(sql);
    Query query = connection.query(sql.c_str());
    CHECK(query.next());
  }
  Query best = connection.query(queries.at(0).c_str());
  REQUIRE(best.next());
  CHECK(best.int32(0) == 5);  // the best comes first
}

TEST_CASE("docs: every table of ours is described", "[docs]") {
  const TempFolder folder;
  const auto file = folder / "s.db";
  (void)SqliteStore::open(file, SqliteStore::Mode::kCreate);
  const std::string page = read_file(hfta::testing::source_folder() / "docs/storage.md");
  Connection connection(file, false, false);
  Query tables = connection.query("SELECT name FROM sqlite_master WHERE type = 'table'");
  while (tables.next()) CHECK_THAT(page, Catch::Contains("`" + tables.text(0) + "`"));
}

}  // namespace
}  // namespace hfta::storage::testing
