/// Which files are opened, which are refused, and that refused ones stay as they are.
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <utility>

#include "storage/sqlite/connection.hpp"
#include "storage/sqlite/optuna_tables.hpp"
#include "storage/sqlite/sqlite_store.hpp"
#include "tests/storage/checks.hpp"
#include "tests/storage/samples.hpp"

namespace hfta::storage::testing {
namespace {

namespace fs = std::filesystem;
using Mode = SqliteStore::Mode;

std::string sample_bytes() {
  static const std::string bytes = [] {
    const TempFolder folder;
    {
      SqliteStore store = SqliteStore::open(folder / "s.db", Mode::kCreate);
      write_sample(store, "s");
    }
    return read_file(folder / "s.db");
  }();
  return bytes;
}

void change(const fs::path& file, const char* sql) { Connection(file, true, false).execute(sql); }

std::size_t files_in(const TempFolder& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder.path()), {}));
}

TEST_CASE("open: a file that is not there is made only by kCreate", "[open]") {
  const TempFolder folder;
  const Mode mode = GENERATE(Mode::kReadOnly, Mode::kReadWrite);
  check_refused(folder / "new.db", "no such file", [&] { (void)SqliteStore::open(folder / "new.db", mode); });
  CHECK(files_in(folder) == 0);
  check_refused("new.db", "no folder", [&] { (void)SqliteStore::open(folder / "none" / "new.db", Mode::kCreate); });
  CHECK(files_in(folder) == 0);
  CHECK(SqliteStore::open(folder / "new.db", Mode::kCreate).studies().empty());
  CHECK(files_in(folder) == 1);
  CHECK(SqliteStore::open(folder / "new.db", mode).studies().empty());
}

TEST_CASE("open: names are only names", "[open]") {
  const TempFolder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  for (const char* name : {":memory:", "file:x.db?mode=memory", "a b.db", "x?y#z%20.db", "it's.db"}) {
    INFO(name);
    SqliteStore store = SqliteStore::open(name, Mode::kCreate);
    CHECK(fs::exists(folder / name));
  }
  fs::current_path(before);
}

TEST_CASE("open: a file that was run by one name is opened by it, whatever it is called by", "[open]") {
  const TempFolder folder;
  const fs::path real = folder / "real.db", link = folder / "link.db", hard = folder / "hard.db";
  const fs::path place = fs::canonical(folder.path());
  fs::create_symlink("real.db", link);  // to what is not there yet
  {
    SqliteStore store = SqliteStore::open(link, Mode::kCreate);
    CHECK(store.path() == place / "real.db");
    fs::create_hard_link(real, hard);
    CHECK(SqliteStore::open(hard, Mode::kReadOnly).path() == place / "hard.db");  // no name is better than another yet
    REQUIRE(store.take_lease("s", std::nullopt, "token", "holder"));
  }
  for (const Mode mode : {Mode::kExamine, Mode::kReadOnly, Mode::kReadWrite, Mode::kCreate}) {
    for (const fs::path& name : {real, link, hard}) CHECK(SqliteStore::open(name, mode).path() == place / "real.db");
  }
  fs::copy_file(real, folder / "copy.db");
  CHECK(SqliteStore::open(folder / "copy.db", Mode::kReadWrite).path() == place / "copy.db");
  fs::rename(real, folder / "moved.db");
  CHECK(SqliteStore::open(folder / "moved.db", Mode::kReadWrite).path() == place / "moved.db");
  fs::rename(folder / "copy.db", real);  // another file has taken the name
  CHECK(SqliteStore::open(hard, Mode::kReadWrite).path() == place / "hard.db");
}

TEST_CASE("open: what keeps a store from being made is said, and nothing is left", "[open]") {
  const TempFolder folder;
  check_refused("name", "its name has 250 bytes, wanted at most 247",
                [&] { (void)SqliteStore::open(folder / std::string(250, 'n'), Mode::kCreate); });
  CHECK(files_in(folder) == 0);
  CHECK(SqliteStore::open(folder / std::string(247, 'n'), Mode::kCreate).studies().empty());
  fs::permissions(folder.path(), fs::perms(0555));
  const uid_t self = ::geteuid();
  if (self == 0) REQUIRE(::seteuid(12345) == 0);  // root may write anywhere
  check_refused("new.db", "cannot be written to: Permission denied",
                [&] { (void)SqliteStore::open(folder / "new.db", Mode::kCreate); });
  if (self == 0) REQUIRE(::seteuid(self) == 0);
  fs::permissions(folder.path(), fs::perms(0700));
  CHECK(files_in(folder) == 1);
}

TEST_CASE("open: while another program makes Optuna's tables one after another, it is waited for", "[open]") {
  const TempFolder folder;
  const fs::path file = folder / "s.db";
  const std::string all = kOptunaTables;
  const auto statement = [&](std::size_t& from) {
    const std::size_t begin = from;
    from = all.find(";\n", begin) + 2;
    return all.substr(begin, from - begin);
  };
  std::size_t at = 0;
  Connection(file, true, true).execute(statement(at).c_str());
  std::thread optuna([&] {
    while (at < all.size()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      Connection(file, true, false).execute(statement(at).c_str());
    }
  });
  const Mode mode = GENERATE(Mode::kReadOnly, Mode::kCreate);
  CHECK(SqliteStore::open(file, mode).studies().empty());
  optuna.join();
  CHECK(SqliteStore::open(file, Mode::kCreate).studies().empty());
}

TEST_CASE("open: tables that nobody goes on making are refused", "[open]") {
  const TempFolder folder;
  Connection(folder / "s.db", true, true).execute("CREATE TABLE studies (study_id INTEGER)");
  check_refused(folder / "s.db", "without Optuna's table",
                [&] { (void)SqliteStore::open(folder / "s.db", Mode::kCreate); });
}

struct Refused {
  const char* what;
  std::string bytes;
  const char* words;
  bool also_by_create;
};

TEST_CASE("open: what is not a study is refused and stays as it is", "[open]") {
  const TempFolder folder;
  const fs::path file = folder / "s.db";
  const auto database = [&](const char* sql) {
    const fs::path made = folder / "made.db";
    write_file(made, sample_bytes());
    change(made, sql);
    std::string bytes = read_file(made);
    fs::remove(made);
    return bytes;
  };
  const auto other = [&](const char* sql) {
    const fs::path made = folder / "other.db";
    Connection(made, true, true).execute(sql);
    std::string bytes = read_file(made);
    fs::remove(made);
    return bytes;
  };
  const Refused cases[] = {
      {"text", "study: digits\nmetric: {name: val_accuracy}\n" + std::string(4000, '#'), "not a study", true},
      {"short text", "hello", "not a study", true},
      {"zeros", std::string(8192, '\0'), "not a study", true},
      {"0 bytes", "", "empty", false},
      {"half of the header", sample_bytes().substr(0, 50), "damaged", true},
      {"header only", sample_bytes().substr(0, 100), "", true},
      {"half", sample_bytes().substr(0, sample_bytes().size() / 2), "damaged", true},
      {"another database", other("CREATE TABLE t (x)"), "without Optuna's table", true},
      {"a newer store", database("UPDATE hfta_meta SET schema_version = 99, library_version = '7.5'"),
       "found store schema 99 (written by hfta-tune 7.5), wanted at most 4", true},
      {"no schema number", database("DELETE FROM hfta_meta"), "hfta_meta is empty", true},
      {"schema 0", database("UPDATE hfta_meta SET schema_version = 0"), "store schema 0", true},
      {"another Optuna", database("UPDATE alembic_version SET version_num = 'v9.9.9.a'"), "v9.9.9.a", true},
      {"a table of Optuna is missing", database("DROP TABLE trial_intermediate_values"), "'trial_intermediate_values'",
       true},
  };
  for (const Refused& c : cases) {
    for (const Mode mode : {Mode::kExamine, Mode::kReadOnly, Mode::kReadWrite, Mode::kCreate}) {
      if (mode == Mode::kCreate && !c.also_by_create) continue;
      INFO(c.what);
      write_file(file, c.bytes);
      check_refused(file, c.words, [&] { (void)SqliteStore::open(file, mode).trials("s"); });
      CHECK(read_file(file) == c.bytes);
      CHECK(files_in(folder) == 1);
    }
  }
  check_refused(folder.path(), "found a folder", [&] { (void)SqliteStore::open(folder.path(), Mode::kCreate); });
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  check_refused("pipe", "device or pipe", [&] { (void)SqliteStore::open(folder / "pipe", Mode::kReadOnly); });
}

TEST_CASE("open: an empty file or database becomes a store by kCreate", "[open]") {
  const TempFolder folder;
  write_file(folder / "zero.db", "");
  Connection(folder / "bare.db", true, true).execute("PRAGMA user_version = 3; VACUUM");
  for (const char* name : {"zero.db", "bare.db"}) {
    INFO(name);
    {
      SqliteStore store = SqliteStore::open(folder / name, Mode::kCreate);
      write_sample(store, "s");
    }
    check_equal(SqliteStore::open(folder / name, Mode::kReadOnly).trials("s"), sample_trials());
  }
}

TEST_CASE("open: read-only works on a read-only file and changes nothing", "[open]") {
  const TempFolder folder;
  const fs::path file = folder / "s.db";
  write_file(file, sample_bytes());
  REQUIRE(::chmod(file.c_str(), 0444) == 0);
  REQUIRE(::chmod(folder.path().c_str(), 0555) == 0);
  {
    SqliteStore store = SqliteStore::open(file, Mode::kReadOnly);
    check_equal(store.trials("s"), sample_trials());
    check_refused(file, "cannot be written", [&] { store.commit("s", sample_round(1)); });
    check_refused(file, "cannot be written", [&] { (void)store.add_trials("s", {{params_of(0)}}, at(0)); });
    check_refused(file, "cannot be written", [&] { store.create(sample_study("other")); });
    if (::geteuid() != 0) {
      SqliteStore writer = SqliteStore::open(file, Mode::kReadWrite);
      check_refused(file, "cannot be written", [&] { writer.commit("s", sample_round(1)); });
    }
  }
  REQUIRE(::chmod(folder.path().c_str(), 0755) == 0);
  CHECK(read_file(file) == sample_bytes());
  CHECK(files_in(folder) == 1);
}

TEST_CASE("open: a file that somebody set to WAL is read, and goes back when we write", "[open]") {
  const TempFolder folder;
  const fs::path file = folder / "s.db";
  write_file(file, sample_bytes());
  change(file, "PRAGMA journal_mode=WAL");
  check_equal(SqliteStore::open(file, Mode::kReadOnly).trials("s"), sample_trials());
  {
    Connection other(file, true, false);
    other.execute("BEGIN; SELECT count(*) FROM trials");  // holds the file in WAL mode
    SqliteStore store = SqliteStore::open(file, Mode::kReadWrite);
    store.commit("s", sample_round(1));
    other.execute("COMMIT");
  }
  SqliteStore store = SqliteStore::open(file, Mode::kReadWrite);
  check_equal(store.trials("s"), sample_trials());
  CHECK(files_in(folder) == 1);
}

}  // namespace
}  // namespace hfta::storage::testing
