#pragma once
/// Optuna's tables as Optuna makes them.

namespace hfta::storage {

/// Optuna's name for this layout of its tables (its alembic revision): the same from Optuna 3.2 to 5.0.
inline constexpr const char* kOptunaRevision = "v3.2.0.a";

/// CREATE statements of that layout, with its version rows.
extern const char* const kOptunaTables;

}  // namespace hfta::storage
