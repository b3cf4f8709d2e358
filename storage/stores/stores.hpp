#pragma once
/// Stores by URL: what `storage:` and --storage may name. The table is in stores.cpp, a row for each kind of store.
///
/// A URL is `scheme://...`; without a scheme it is the path of an SQLite file. Each call throws Error{kConfig} for a
/// URL that names no store which a user can have; the message begins with "storage: " and lists those that there are.

#include <filesystem>
#include <memory>
#include <string>

#include "storage/store.hpp"

namespace hfta::storage {

/// How a store is opened.
enum class OpenMode {
  kCreate,     ///< Written to; made where it is absent, or half made.
  kReadWrite,  ///< Written to.
  kReadOnly,   ///< Nothing is made or written.
};

/// Throws Error{kStorage} if there is no store, or one that cannot be used.
[[nodiscard]] std::unique_ptr<Store> open_store(const std::string& url, OpenMode mode);
/// open_store(), but null where no store has been made yet. `mode` is not kCreate.
[[nodiscard]] std::unique_ptr<Store> open_store_if_made(const std::string& url, OpenMode mode);

/// The URL of the store that `url` means in a config of `folder`. A file: its path from there, without `.` and `..`.
[[nodiscard]] std::string resolve_store(const std::string& url, const std::filesystem::path& folder);
/// The URL that means everywhere what `url` means in the working folder.
[[nodiscard]] std::string absolute_store(const std::string& url);

/// The file of a store that is a file, for commands that need a file (doctor, backup).
[[nodiscard]] std::filesystem::path store_file(const std::string& url);

}  // namespace hfta::storage
