#pragma once
/// The tables of a study store: Optuna's, and ours beside them. docs/storage.md says what a row of each means.

#include "storage/sqlite/connection.hpp"
#include "storage/sqlite/sqlite_store.hpp"

namespace hfta::storage {

/// The tables that an SQLite file has.
enum class Contents {
  kEmpty,    ///< No table at all.
  kOptuna,   ///< Optuna's tables, without ours.
  kEarlier,  ///< Optuna's tables and ours, of an earlier schema.
  kHfta,     ///< Optuna's tables and ours, of this schema.
};

/// Looks at the tables and their versions; while another program is making Optuna's tables, waits for it. Throws
/// Error{kStorage} for a schema that computes (see plain_schema.hpp), for a database of something else, for tables of
/// another Optuna layout than v3.2.0.a (Optuna 3.2 and later), and for hfta_* tables newer than kNewestSchema.
[[nodiscard]] Contents inspect(Connection& connection);

/// Creates what is missing and lifts an earlier schema to kNewestSchema, in one transaction. Before an earlier schema
/// is lifted, the store is copied to `<store>.schema-<number>`.
void complete_tables(Connection& connection);

}  // namespace hfta::storage
