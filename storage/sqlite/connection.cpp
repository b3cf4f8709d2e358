#include "storage/sqlite/connection.hpp"

#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/folder.hpp"
#include "base/text.hpp"
#include "storage/sqlite/companions.hpp"

namespace hfta::storage {
namespace {

constexpr std::pair<int, int> kLimits[] = {{SQLITE_LIMIT_LENGTH, 64 << 20},  {SQLITE_LIMIT_SQL_LENGTH, 1 << 20},
                                           {SQLITE_LIMIT_COLUMN, 200},       {SQLITE_LIMIT_EXPR_DEPTH, 100},
                                           {SQLITE_LIMIT_TRIGGER_DEPTH, 10}, {SQLITE_LIMIT_WORKER_THREADS, 0}};
constexpr int kStepsPerLook = 10'000;
constexpr std::uint64_t kFreeSteps = 10'000'000, kStepsPerByte = 64;
constexpr std::uint64_t kFreeRows = 1000, kLeastRowBytes = 4;

/// The text of what happened and what to do about it, for each of SQLite's result codes that a user can meet.
std::string explain(int code, const char* detail, int system_error, const std::string& path) {
  const std::string reason = system_error != 0 ? std::strerror(system_error) : detail;
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return "locked by another program; wait for it to finish or close it, then run the same command again";
    case SQLITE_FULL:
      return "disk full: this write was taken back whole; free some space, then run the same command again";
    case SQLITE_READONLY:
      if (code == SQLITE_READONLY_DBMOVED) return "the file was moved or removed while in use; put it back";
      if (code == SQLITE_READONLY_ROLLBACK || code == SQLITE_READONLY_RECOVERY) {
        return "a killed program left a half-written round, which must be taken back first; wanted write permission "
               "for "
               "the file and its folder";
      }
      return "found a file or folder that cannot be written, wanted write permission for both";
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_CANTOPEN:
      return fmt::format("cannot be opened: {}; check the path and the permissions of the file and its folder", reason);
    case SQLITE_CORRUPT:
      return fmt::format(
          "damaged ({}); keep the file, go back to a copy of it, or salvage its rows with sqlite3 '{}' "
          "'.recover'",
          detail, path);
    case SQLITE_NOTADB:
      return "not a study: found something that is not an SQLite database, or whose header is damaged";
    case SQLITE_IOERR:
      return fmt::format("the disk could not be read or written: {}; this write was taken back whole", reason);
    case SQLITE_NOMEM:
      return "out of memory";
    case SQLITE_INTERRUPT:
      return "damaged, or made to do harm: reading it takes more work than its size explains; keep the file, and go "
             "back to a copy of it";
    default:
      return fmt::format(
          "SQLite answers '{}' (code {}); the file's tables are not as hfta-tune wrote them, or this is "
          "a bug of hfta-tune",
          printable(detail), code);
  }
}

bool is_locked(int code) { return (code & 0xff) == SQLITE_BUSY || (code & 0xff) == SQLITE_LOCKED; }

[[noreturn]] void fail_with(const std::filesystem::path& path, int code, const char* detail, int system_error) {
  const std::string name = printable(path.string());
  throw Error(is_locked(code) ? ErrorKind::kLocked : ErrorKind::kStorage,
              fmt::format("{}: {}", name, explain(code, detail, system_error, name)));
}

}  // namespace

Query::~Query() {
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

bool Query::next() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) {
    connection_.check_rows(++rows_);
    return true;
  }
  if (code != SQLITE_DONE) connection_.fail(code);
  return false;
}

void Query::run() {
  while (next()) {
  }
  check(sqlite3_reset(statement_));
}

int Query::int32(int column) const {
  const std::int64_t found = integer(column);
  if (std::in_range<int>(found)) return static_cast<int>(found);
  using Limits = std::numeric_limits<int>;
  const char* name = sqlite3_column_name(statement_, column);
  throw Error(
      ErrorKind::kStorage,
      fmt::format("{}: damaged: found {} in column '{}', wanted {} to {}; keep the file and go back to a copy of "
                  "it",
                  printable(connection_.path().string()), found, printable(name == nullptr ? "" : name), Limits::min(),
                  Limits::max()));
}

std::string_view Query::view(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  if (text == nullptr) return {};
  return {text, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

void Query::bind_one(int index, std::string_view value) {
  // A null pointer would bind NULL; an empty view may hold one.
  const char* data = value.data() != nullptr ? value.data() : "";
  check(sqlite3_bind_text64(statement_, index, data, value.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
}

void Query::check(int code) {
  if (code != SQLITE_OK) connection_.fail(code);
}

Connection::Connection(std::filesystem::path path, bool writable, bool create)
    : path_(std::move(path)), work_(std::make_unique<Work>(Work{path_})) {
  check_companions(path_);
  // Read-only users open for writing too, because only such a connection can roll back what a killed writer left;
  // SQLite falls back to reading where it must.
  open(path_, SQLITE_OPEN_READWRITE | (create ? SQLITE_OPEN_CREATE : 0));
  if (!writable) sqlite3_db_config(database_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  // A transaction ends when its journal is removed. EXTRA syncs the folder after that: with FULL, the journal may be
  // back after a power failure, and takes back what was told to be durable.
  execute("PRAGMA foreign_keys=ON; PRAGMA synchronous=EXTRA");
  if (!writable) execute("PRAGMA query_only=ON");
}

Connection Connection::examining(const std::filesystem::path& path) {
  check_companions(path);
  return {path, PrivateCopy::where_needed(path)};
}

// The copy is private: there, SQLite may take back what it wants.
Connection::Connection(std::filesystem::path path, std::unique_ptr<PrivateCopy> copy)
    : path_(std::move(path)), copy_(std::move(copy)), work_(std::make_unique<Work>(Work{path_})) {
  open(copy_ ? copy_->path() : path_, copy_ ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY);
  execute("PRAGMA query_only=ON");
}

void Connection::open(const std::filesystem::path& file, int flags) {
  // An absolute path is never taken for ":memory:" or a "file:" URI.
  const std::string absolute = std::filesystem::absolute(file).string();
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(absolute.c_str(), &opened, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  database_.reset(opened);
  if (opened == nullptr) fail_with(path_, SQLITE_NOMEM, "", 0);
  if (code != SQLITE_OK) fail(code);
  sqlite3_extended_result_codes(opened, 1);
  wait_at_most(kPatience);
  sqlite3_db_config(opened, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(opened, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  for (const auto& [limit, value] : kLimits) sqlite3_limit(opened, limit, value);
  sqlite3_progress_handler(opened, kStepsPerLook, Work::has_become_too_much, work_.get());
  execute("PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA mmap_size=0");
}

// Every row takes a few bytes, and a few steps of SQLite's machine: what a file can honestly ask for is proportional to
// its size. Trees whose branches are shared, and texts that run in circles, ask for more.
std::uint64_t Connection::Work::bytes() const {
  std::uint64_t sum = 0;
  for (const char* ending : {"", "-wal"}) {
    std::error_code error;
    std::filesystem::path file = path;
    const std::uintmax_t size = std::filesystem::file_size(file += ending, error);
    if (!error) sum += size;
  }
  return sum;
}

int Connection::Work::has_become_too_much(void* self) {
  Work& work = *static_cast<Work*>(self);
  work.steps += kStepsPerLook;
  return work.steps > kFreeSteps && work.steps > kFreeSteps + kStepsPerByte * work.bytes() ? 1 : 0;
}

void Connection::check_rows(std::uint64_t rows) {
  if (rows <= work_->rows_explained || rows < kFreeRows) return;
  work_->rows_explained = work_->bytes() / kLeastRowBytes;
  if (rows > work_->rows_explained) fail(SQLITE_INTERRUPT);
}

namespace {

constexpr int kPagesAtOnce = 256, kMostRestarts = 3;
constexpr int kMillisecondsBetween = 1;

// A copy is a reader in the way of writers: between small steps others may write. Each time they do the copy begins
// anew, so that after a few times all of it is taken in one step. The loop looks for a free moment more often than
// SQLite would: a program that writes without pause leaves few.
int copy_pages(sqlite3_backup* backup) {
  int restarts = 0, left = std::numeric_limits<int>::max();
  for (auto patience = Connection::kPatience; patience.count() > 0;) {
    const int code = sqlite3_backup_step(backup, restarts < kMostRestarts ? kPagesAtOnce : -1);
    if (code != SQLITE_OK && !is_locked(code)) return code;
    if (code == SQLITE_OK) {
      const int before = std::exchange(left, sqlite3_backup_remaining(backup));
      restarts += left >= before ? 1 : 0;
      patience = Connection::kPatience;
    }
    sqlite3_sleep(kMillisecondsBetween);
    patience -= std::chrono::milliseconds(kMillisecondsBetween);
  }
  return SQLITE_BUSY;
}

}  // namespace

void Connection::copy_to(const std::filesystem::path& file) {
  const std::filesystem::path target = std::filesystem::absolute(file);
  const Folder folder(target.parent_path());
  const std::string name = target.filename().string(), temporary = folder.new_file(name + ".tmp.").first;
  try {
    copy_into(target.parent_path() / temporary);
    if (const int reason = folder.rename(temporary, name); reason != 0) fail_with(file, SQLITE_CANTOPEN, "", reason);
  } catch (const Error&) {
    folder.remove(temporary);
    throw;
  }
  folder.sync();
}

void Connection::copy_into(const std::filesystem::path& empty) {
  Connection copy(empty, true, false);
  sqlite3_backup* backup = sqlite3_backup_init(copy.database_.get(), "main", database_.get(), "main");
  if (backup == nullptr) copy.fail(sqlite3_errcode(copy.database_.get()));
  wait_at_most(std::chrono::milliseconds(0));
  const int stepped = copy_pages(backup);
  wait_at_most(kPatience);
  const int finished = sqlite3_backup_finish(backup);
  if (is_locked(stepped)) fail_with(path_, stepped, "", 0);
  if (stepped != SQLITE_DONE || finished != SQLITE_OK) copy.fail(finished != SQLITE_OK ? finished : stepped);
  copy.execute("PRAGMA journal_mode=DELETE");  // even if the original was set to WAL, one file is the whole copy
}

Query Connection::query(std::string_view sql) {
  work_->steps = 0;
  auto found = statements_.find(sql);
  if (found == statements_.end()) {
    sqlite3_stmt* prepared = nullptr;
    const int code = sqlite3_prepare_v3(database_.get(), sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &prepared, nullptr);
    if (code != SQLITE_OK) fail(code);
    found = statements_.emplace(sql, std::unique_ptr<sqlite3_stmt, Finalize>(prepared)).first;
  }
  return {*this, found->second.get()};
}

void Connection::execute(const char* sql) {
  work_->steps = 0;
  const int code = sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(code);
}

void Connection::fail(int code) {
  const int extended = sqlite3_extended_errcode(database_.get());
  const int chosen = (extended & 0xff) == (code & 0xff) ? extended : code;
  fail_with(path_, chosen, sqlite3_errmsg(database_.get()), sqlite3_system_errno(database_.get()));
}

Transaction::Transaction(Connection& connection, Kind kind) : connection_(connection) {
  connection_.execute(kind == Kind::kWrite ? "BEGIN IMMEDIATE" : "BEGIN");
}

Transaction::~Transaction() {
  if (!open_) return;
  try {
    connection_.execute("ROLLBACK");
  } catch (const Error&) {
    // After a full disk or an I/O error SQLite has rolled back already, and says that there is no transaction.
  }
}

void Transaction::commit() {
  connection_.execute("COMMIT");
  open_ = false;
}

}  // namespace hfta::storage
