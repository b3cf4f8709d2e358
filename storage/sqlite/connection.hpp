#pragma once
/// RAII over SQLite's C interface: a connection, its queries, its transactions. Private to storage/sqlite/.

#include <sqlite3.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "storage/sqlite/private_copy.hpp"

namespace hfta::storage {

class Connection;

/// One use of a prepared statement. The statement itself is kept by the connection; it is reset when this goes.
/// Bind parameters and columns by position; every failure is an Error, as Connection::fail() throws it.
class Query {
 public:
  Query(Connection& connection, sqlite3_stmt* statement) : connection_(connection), statement_(statement) {}
  ~Query();
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  /// Binds ?1, ?2, ... in order. Text is copied.
  template <typename... Values>
  Query& bind(const Values&... values) {
    int index = 0;
    (bind_one(++index, values), ...);
    return *this;
  }
  /// Moves to the next row; false after the last.
  [[nodiscard]] bool next();
  /// Executes a statement without rows; the query is then ready to be bound again.
  void run();

  [[nodiscard]] std::optional<double> number(int column) const {
    return is_null(column) ? std::nullopt : std::optional(real(column));
  }
  [[nodiscard]] bool is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  [[nodiscard]] std::int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
  /// The integer as an int. One beyond an int's range is an Error{kStorage} that names the file, the column and what
  /// was found: nothing of ours writes such a number.
  [[nodiscard]] int int32(int column) const;
  [[nodiscard]] double real(int column) const { return sqlite3_column_double(statement_, column); }
  /// Valid until the next row; empty for NULL.
  [[nodiscard]] std::string_view view(int column) const;
  [[nodiscard]] std::string text(int column) const { return std::string(view(column)); }

 private:
  void bind_one(int index, std::int64_t value) { check(sqlite3_bind_int64(statement_, index, value)); }
  void bind_one(int index, int value) { check(sqlite3_bind_int(statement_, index, value)); }
  void bind_one(int index, double value) { check(sqlite3_bind_double(statement_, index, value)); }
  void bind_one(int index, std::string_view value);
  void bind_one(int index, const char* value) { bind_one(index, std::string_view(value)); }
  void bind_one(int index, const std::string& value) { bind_one(index, std::string_view(value)); }
  void bind_one(int index, std::nullopt_t /*null*/) { check(sqlite3_bind_null(statement_, index)); }
  template <typename T>
  void bind_one(int index, const std::optional<T>& value) {
    value ? bind_one(index, *value) : bind_one(index, std::nullopt);
  }
  void check(int code);

  Connection& connection_;
  sqlite3_stmt* statement_;
  std::uint64_t rows_ = 0;
};

/// An open database file. Used by one thread at a time. The file may come from a stranger: a journal that would harm
/// other files is refused (see companions.hpp), a statement that gives more rows, or takes more work, than the file's
/// size explains is aborted, and texts are limited to 64 MiB.
class Connection {
 public:
  /// The time that a statement waits while another program holds the file, unless told otherwise.
  static constexpr std::chrono::milliseconds kPatience{10'000};

  /// `writable` false: every write is refused, but a transaction that a killed writer left half-written is rolled back
  /// where the file's permissions allow it (nothing could be read otherwise). `create`: an absent file is made.
  Connection(std::filesystem::path path, bool writable, bool create);
  /// Writes nothing, not even what a half-written transaction needs to be taken back: where that, or a write-ahead log,
  /// is in the way, a private copy is read (see private_copy.hpp), and messages name the file all the same.
  static Connection examining(const std::filesystem::path& path);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Replaces kPatience from the next statement on.
  void wait_at_most(std::chrono::milliseconds longest) {
    sqlite3_busy_timeout(database_.get(), static_cast<int>(longest.count()));
  }
  /// The statement is prepared once and kept for the connection's life; one Query of it may be alive at a time.
  [[nodiscard]] Query query(std::string_view sql);
  /// Several statements, without parameters or rows.
  void execute(const char* sql);
  /// Rows that the last INSERT, UPDATE or DELETE touched.
  [[nodiscard]] int changes() const { return sqlite3_changes(database_.get()); }
  [[nodiscard]] std::int64_t last_id() const { return sqlite3_last_insert_rowid(database_.get()); }
  /// The private copy of what examining() could not read in place; nullptr if there is none.
  [[nodiscard]] const PrivateCopy* copy() const { return copy_.get(); }
  /// Throws Error{kStorage}, or Error{kLocked} where another program holds the file: the file, what happened, what to
  /// do.
  [[noreturn]] void fail(int code);
  /// Throws as fail() if the file has no room for so many rows.
  void check_rows(std::uint64_t rows);
  /// Copies the whole database, as it is at one moment, to a file that is absent or replaced; durable when it returns.
  /// Other programs may continue meanwhile: they are delayed for about a millisecond at a time; only if they write
  /// without pause are they delayed once for as long as the whole copy takes.
  void copy_to(const std::filesystem::path& file);

 private:
  Connection(std::filesystem::path path, std::unique_ptr<PrivateCopy> copy);
  void open(const std::filesystem::path& file, int flags);
  void copy_into(const std::filesystem::path& empty);

  struct Close {
    void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
  };
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  /// The cost of the current statement.
  struct Work {
    std::filesystem::path path;
    std::uint64_t steps = 0, rows_explained = 0;
    /// Bytes of the file and its write-ahead log.
    [[nodiscard]] std::uint64_t bytes() const;
    static int has_become_too_much(void* self);
  };
  std::filesystem::path path_;
  std::unique_ptr<PrivateCopy> copy_;
  std::unique_ptr<Work> work_;  // before database_, which calls it
  std::unique_ptr<sqlite3, Close> database_;
  struct Hash {
    using is_transparent = void;  // looked up without making a string
    std::size_t operator()(std::string_view sql) const { return std::hash<std::string_view>()(sql); }
  };
  std::unordered_map<std::string, std::unique_ptr<sqlite3_stmt, Finalize>, Hash, std::equal_to<>> statements_;
};

/// BEGIN ... COMMIT; rolled back unless commit() returned.
class Transaction {
 public:
  /// kRead: one snapshot for several queries. kWrite takes the write lock at once: a read that becomes a write later
  /// could fail without waiting.
  enum class Kind { kRead, kWrite };
  Transaction(Connection& connection, Kind kind);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();

 private:
  Connection& connection_;
  bool open_ = true;
};

}  // namespace hfta::storage
