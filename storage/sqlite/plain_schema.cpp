#include "storage/sqlite/plain_schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "base/error.hpp"
#include "base/text.hpp"

namespace hfta::storage {
namespace {

using Words = std::vector<std::string>;

constexpr int kMostObjects = 1000;  // Optuna's and ours are about 70

bool is_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || (c & 0x80) != 0;
}

/// The end of the quoted word that begins at `at`; a doubled quote stands for one.
std::size_t end_of_quoted(std::string_view sql, std::size_t at) {
  const char close = sql[at] == '[' ? ']' : sql[at];
  for (++at; at < sql.size(); ++at) {
    if (sql[at] != close) continue;
    if (close == ']' || at + 1 == sql.size() || sql[at + 1] != close) return at + 1;
    ++at;
  }
  return sql.size();
}

std::size_t after_comment(std::string_view sql, std::size_t at) {
  const bool line = sql[at] == '-';
  const std::size_t end = sql.find(line ? "\n" : "*/", at + 2);
  return end == std::string_view::npos ? sql.size() : end + (line ? 1 : 2);
}

bool is_one_of(const std::string& word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// A word in the brackets of a CHECK or DEFAULT, from `at` on, that computes more than a comparison; "" if none.
std::string computes(const Words& words, std::size_t at) {
  int depth = 0;
  for (; at < words.size(); ++at) {
    if (words[at] == "(") ++depth;
    if (words[at] == ")" && --depth == 0) break;
    if (is_one_of(words[at], {"like", "glob", "match", "regexp", "select", "case", "|", "-", "+", "*"}))
      return words[at];
    const bool called = at + 1 < words.size() && words[at + 1] == "(" && (is_name(words[at][0]) || words[at][0] == '"');
    if (called && !is_one_of(words[at], {"in", "and", "or", "not"})) return words[at];
  }
  return "";
}

std::string fault_of_table(const Words& words) {
  if (words.size() < 2 || words[0] != "create" || words[1] != "table") return "a virtual table";
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (is_one_of(words[i], {"as", "generated"})) return "a generated column";
    if (!is_one_of(words[i], {"check", "default"}) || i + 1 == words.size() || words[i + 1] != "(") continue;
    if (const std::string what = computes(words, i + 1); !what.empty()) return fmt::format("'{}' in a rule", what);
  }
  return "";
}

std::string fault_of_index(const Words& words) {
  const bool plain =
      std::count(words.begin(), words.end(), "(") == 1 && std::find(words.begin(), words.end(), "where") == words.end();
  return plain ? "" : "an index over an expression, or over a part of the rows";
}

}  // namespace

Words sql_words(std::string_view sql) {
  Words words;
  for (std::size_t i = 0; i < sql.size();) {
    const char c = sql[i];
    const std::string_view two = sql.substr(i, 2);
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      ++i;
    } else if (two == "--" || two == "/*") {
      i = after_comment(sql, i);
    } else if (c == '"' || c == '\'' || c == '`' || c == '[') {
      const std::size_t end = end_of_quoted(sql, i);
      words.push_back("\"" + std::string(sql.substr(i + 1, end - i - 1)));
      i = end;
    } else if (is_name(c)) {
      std::size_t end = i;
      std::string word;
      for (; end < sql.size() && is_name(sql[end]); ++end) {
        word += static_cast<char>(std::tolower(static_cast<unsigned char>(sql[end])));
      }
      words.push_back(std::move(word));
      i = end;
    } else {
      words.emplace_back(1, c);
      ++i;
    }
  }
  return words;
}

void check_plain(Connection& connection, const std::set<Words>& triggers) {
  Query query = connection.query("SELECT type, name, sql FROM sqlite_master");
  for (int count = 0; query.next(); ++count) {
    const std::string type = query.text(0);
    const Words words = sql_words(query.view(2));
    std::string fault;
    if (count >= kMostObjects) fault = "one table or index too many";
    if (type == "table") fault = fault_of_table(words);
    if (type == "index" && !query.is_null(2)) fault = fault_of_index(words);
    if (type == "trigger" && !triggers.contains(words)) fault = "a trigger that is not of hfta-tune";
    if (type == "view") fault = "a view";
    if (fault.empty()) continue;
    throw Error(
        ErrorKind::kStorage,
        fmt::format("{}: found {} ({} {}), wanted plain tables: reading this file would run what its maker wrote. "
                    "If it is your own, drop it with sqlite3",
                    printable(connection.path().string()), fault, printable(type), printable(query.text(1))));
  }
}

}  // namespace hfta::storage
