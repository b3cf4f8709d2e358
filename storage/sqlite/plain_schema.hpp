#pragma once
/// Checks what a store's schema contains. Private to storage/sqlite/.

#include <set>
#include <string>
#include <vector>

#include "storage/sqlite/connection.hpp"

namespace hfta::storage {

/// The words of an SQL statement, without space and comments: names and keywords in lower case, quoted names and texts
/// behind a '"', everything else a character each.
[[nodiscard]] std::vector<std::string> sql_words(std::string_view sql);

/// Refuses a schema that computes something when the store is read or written: a store is data, and may come from an
/// untrusted source. Plain tables and indexes pass, including unknown ones. Views, generated columns, virtual tables,
/// partial indexes and indexes over expressions, functions in CHECK and DEFAULT, and triggers other than `triggers` are
/// refused.
/// Throws Error{kStorage} naming what was found.
void check_plain(Connection& connection, const std::set<std::vector<std::string>>& triggers);

}  // namespace hfta::storage
