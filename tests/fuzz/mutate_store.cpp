#include "mutate_store.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

namespace hfta::testing {
namespace {

constexpr std::size_t kGrowth = 64;  // of a text, at most
constexpr int kMostSteps = 100'000;  // of SQLite's machine, in thousands: a store may compute for ever

struct Close {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};
struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;
using Values = std::vector<std::string>;

// A value as SQL writes it.
std::string quoted(const std::string& text) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string sql = "CAST(x'";
  for (const char c : text) {
    sql += kDigits[static_cast<unsigned char>(c) >> 4];
    sql += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return sql + "' AS TEXT)";
}
std::string name(const std::string& text) {
  std::string sql = "\"";
  for (const char c : text) sql += c == '"' ? std::string("\"\"") : std::string(1, c);
  return sql + "\"";
}

class Mutator {
 public:
  Mutator(sqlite3* database, CountedRandom& random, ChangeBytes change)
      : database_(database), random_(random), change_(change) {}

  void one() {
    using Change = void (Mutator::*)();
    static constexpr std::array<Change, 10> kChanges = {
        &Mutator::set_value,   &Mutator::set_value, &Mutator::set_value, &Mutator::change_text, &Mutator::change_text,
        &Mutator::change_text, &Mutator::exchange,  &Mutator::erase_row, &Mutator::repeat_row,  &Mutator::change_rule};
    (this->*kChanges[random_.below(kChanges.size())])();
  }

 private:
  // The first column of every row; nothing where SQLite refuses.
  Values rows(const std::string& sql) {
    sqlite3_stmt* made = nullptr;
    if (sqlite3_prepare_v2(database_, sql.c_str(), -1, &made, nullptr) != SQLITE_OK) return {};
    const Statement statement(made);
    Values values;
    while (values.size() < 1000 && sqlite3_step(made) == SQLITE_ROW) {
      const auto* text = static_cast<const char*>(sqlite3_column_blob(made, 0));
      values.emplace_back(text == nullptr ? ""
                                          : std::string(text, static_cast<std::size_t>(sqlite3_column_bytes(made, 0))));
    }
    return values;
  }
  void run(const std::string& sql) { static_cast<void>(rows(sql)); }
  std::optional<std::string> any(const Values& values) {
    if (values.empty()) return std::nullopt;
    return values[random_.below(values.size())];
  }

  std::optional<std::string> table() { return any(rows("SELECT name FROM sqlite_master WHERE type = 'table'")); }
  std::optional<std::string> column(const std::string& table) {
    return any(rows("SELECT name FROM pragma_table_info(" + quoted(table) + ")"));
  }
  // One value of a column, as a subquery.
  std::string at_random(const std::string& table, const std::string& column) {
    const std::string place = std::to_string(random_.below(16));
    const std::string from = " FROM " + name(table);
    return "(SELECT " + name(column) + from + " LIMIT 1 OFFSET " + place + " % MAX(1, (SELECT COUNT(*)" + from + ")))";
  }
  std::string value() {
    static const std::array<const char*, 24> kValues = {"NULL",
                                                        "0",
                                                        "1",
                                                        "-1",
                                                        "2",
                                                        "1e999",
                                                        "-1e999",
                                                        "0.5",
                                                        "2147483647",
                                                        "2147483648",
                                                        "-2147483648",
                                                        "9223372036854775807",
                                                        "-9223372036854775808",
                                                        "4294967296",
                                                        "''",
                                                        "'nan'",
                                                        "'NAN'",
                                                        "'INF_POS'",
                                                        "'FINITE'",
                                                        "'COMPLETE'",
                                                        "'WAITING'",
                                                        "x'00ff'",
                                                        "'{}'",
                                                        "1e300"};
    return kValues[random_.below(kValues.size())];
  }

  void set_value() {
    const auto where = table();
    const auto what = where ? column(*where) : std::nullopt;
    if (!what) return;
    run("UPDATE OR IGNORE " + name(*where) + " SET " + name(*what) + " = " + value() + " WHERE " + name(*what) +
        " IS " + at_random(*where, *what));
  }

  std::string changed(std::string text) {
    const std::size_t size = text.size();
    text.resize(size + kGrowth);
    text.resize(change_(reinterpret_cast<std::uint8_t*>(text.data()), size, text.size()));
    return text;
  }

  // Texts are what most is read out of: JSON, names, times.
  void change_text() {
    const auto where = table();
    const auto what = where ? column(*where) : std::nullopt;
    if (!what) return;
    const auto old = any(rows("SELECT " + name(*what) + " FROM " + name(*where)));
    if (!old) return;
    run("UPDATE OR IGNORE " + name(*where) + " SET " + name(*what) + " = " + quoted(changed(*old)) + " WHERE CAST(" +
        name(*what) + " AS TEXT) IS " + quoted(*old));
  }

  // A value of another column.
  void exchange() {
    const auto where = table();
    const auto what = where ? column(*where) : std::nullopt;
    const auto other = table();
    const auto from = other ? column(*other) : std::nullopt;
    if (!what || !from) return;
    run("UPDATE OR IGNORE " + name(*where) + " SET " + name(*what) + " = " + at_random(*other, *from));
  }

  void erase_row() {
    const auto where = table();
    const auto what = where ? column(*where) : std::nullopt;
    if (!what) return;
    run("DELETE FROM " + name(*where) + " WHERE " + name(*what) + " IS " + at_random(*where, *what));
  }

  // Rows again under other keys.
  void repeat_row() {
    const auto where = table();
    if (!where) return;
    std::string columns;
    for (const std::string& each : rows("SELECT name FROM pragma_table_info(" + quoted(*where) + ")")) {
      columns += (columns.empty() ? "" : ", ") + (random_.below(3) == 0 ? value() : name(each));
    }
    run("INSERT OR IGNORE INTO " + name(*where) + " SELECT " + columns + " FROM " + name(*where) + " LIMIT 4");
  }

  // The statement that made a table, an index or a trigger.
  void change_rule() {
    const auto what = any(rows("SELECT name FROM sqlite_master"));
    if (!what) return;
    const auto old = any(rows("SELECT sql FROM sqlite_master WHERE name IS " + quoted(*what)));
    if (!old) return;
    const auto other = any(rows("SELECT sql FROM sqlite_master"));
    const std::string next = random_.below(4) == 0 && other ? *other : changed(*old);
    run("UPDATE sqlite_master SET sql = " + quoted(next) + " WHERE name IS " + quoted(*what));
  }

  sqlite3* database_;
  CountedRandom& random_;
  ChangeBytes change_;
};

int stop(void* steps) { return --*static_cast<int*>(steps) < 0 ? 1 : 0; }

}  // namespace

std::vector<std::uint8_t> mutate_store(const std::uint8_t* data, std::size_t size, CountedRandom& random,
                                       ChangeBytes change) {
  sqlite3* opened = nullptr;
  const int code = sqlite3_open(":memory:", &opened);
  const std::unique_ptr<sqlite3, Close> database(opened);
  auto* copy = static_cast<unsigned char*>(sqlite3_malloc64(std::max<std::size_t>(size, 1)));
  std::memcpy(copy, data, size);
  constexpr unsigned kOurs = SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE;
  const auto length = static_cast<sqlite3_int64>(size);
  if (code != SQLITE_OK || sqlite3_deserialize(opened, "main", copy, length, length, kOurs) != SQLITE_OK) return {};
  int steps = kMostSteps / 1000;
  sqlite3_progress_handler(opened, 1000, stop, &steps);
  sqlite3_limit(opened, SQLITE_LIMIT_LENGTH, 1 << 20);
  constexpr const char* kLoose =
      "PRAGMA writable_schema = ON; PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF";
  if (sqlite3_exec(opened, kLoose, nullptr, nullptr, nullptr) != SQLITE_OK) return {};
  Mutator mutator(opened, random, change);
  for (std::uint64_t count = 1 + random.below(3); count > 0; --count) mutator.one();
  sqlite3_int64 bytes = 0;
  const std::unique_ptr<unsigned char, void (*)(void*)> out(sqlite3_serialize(opened, "main", &bytes, 0), sqlite3_free);
  if (out == nullptr) return {};
  return {out.get(), out.get() + bytes};
}

}  // namespace hfta::testing
