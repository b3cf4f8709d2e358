#pragma once
/// The files beside a store that SQLite acts on when the store is opened. Private to storage/sqlite/.

#include <filesystem>

namespace hfta::storage {

/// Refuses journals that hfta-tune and Optuna never write, before SQLite opens them: one that is not a regular file
/// (SQLite would follow a link), a rollback journal that names a super-journal (SQLite deletes the file of that name,
/// whatever it is), and one that would make the store larger than it ever was. A journal that a killed process left
/// passes. Throws Error{kStorage}.
void check_companions(const std::filesystem::path& store);

}  // namespace hfta::storage
