#include "storage/stores/stores.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "storage/sqlite/sqlite_store.hpp"

namespace hfta::storage {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& url, const std::string& wanted) {
  throw Error(ErrorKind::kConfig, fmt::format("storage: found '{}', wanted {}", excerpt(url), wanted));
}

/// A kind of store.
struct StoreKind {
  std::string_view scheme;
  /// Form of its URLs, for messages; "" where no user can have one.
  std::string_view form;
  /// Why no user can have one.
  std::string_view why_not;
  // The calls of stores.hpp; null where no user can have one. `file` is null where the store is no file.
  std::unique_ptr<Store> (*open)(const std::string& url, OpenMode mode);
  std::unique_ptr<Store> (*open_if_made)(const std::string& url, OpenMode mode);
  std::string (*resolve)(const std::string& url, const fs::path& folder);
  std::string (*absolute)(const std::string& url);
  fs::path (*file)(const std::string& url);
};

SqliteStore::Mode sqlite_mode(OpenMode mode) {
  switch (mode) {
    case OpenMode::kCreate:
      return SqliteStore::Mode::kCreate;
    case OpenMode::kReadWrite:
      return SqliteStore::Mode::kReadWrite;
    case OpenMode::kReadOnly:
      return SqliteStore::Mode::kReadOnly;
  }
  throw Error(ErrorKind::kInternal,
              fmt::format("open mode of a store: found {}, wanted create, read and write, or read only",
                          static_cast<int>(mode)));
}

std::unique_ptr<Store> open_sqlite(const std::string& url, OpenMode mode) {
  return std::make_unique<SqliteStore>(SqliteStore::open(path_from_url(url), sqlite_mode(mode)));
}

std::unique_ptr<Store> open_sqlite_if_made(const std::string& url, OpenMode mode) {
  std::optional<SqliteStore> store = SqliteStore::open_if_made(path_from_url(url), sqlite_mode(mode));
  return store ? std::make_unique<SqliteStore>(std::move(*store)) : nullptr;
}

std::string resolve_sqlite(const std::string& url, const fs::path& folder) {
  return (folder / path_from_url(url)).lexically_normal().string();
}

std::string absolute_sqlite(const std::string& url) { return fs::absolute(path_from_url(url)).string(); }

constexpr StoreKind kKinds[] = {
    {"sqlite", kSqliteUrls, "", open_sqlite, open_sqlite_if_made, resolve_sqlite, absolute_sqlite, path_from_url},
    {"memory", "", "a study in memory ends with the process; hfta-tune simulate keeps it there by itself", nullptr,
     nullptr, nullptr, nullptr, nullptr},
};
constexpr const StoreKind& kPlainPath = kKinds[0];

/// "sqlite" of sqlite:///digits.db, and of sqlite+pysqlite:///digits.db, which is how SQLAlchemy names one of its
/// drivers for the same file. "" for a plain path.
std::string_view scheme_of(std::string_view url) {
  const std::string_view scheme = url.substr(0, std::min(url.find("://"), url.size()));
  if (scheme.size() == url.size()) {
    // A known scheme counts even without slashes: nobody means a file of that name.
    for (const StoreKind& kind : kKinds) {
      if (url.starts_with(kind.scheme) && url.substr(kind.scheme.size()).starts_with(":")) return kind.scheme;
    }
    return "";
  }
  return scheme.substr(0, scheme.find('+'));
}

/// A kind that a user can have.
const StoreKind& kind_of(const std::string& url) {
  std::vector<std::string> forms;
  for (const StoreKind& kind : kKinds) {
    if (kind.open != nullptr) forms.emplace_back(kind.form);
  }
  const std::string_view scheme = scheme_of(url);
  if (scheme.empty()) return kPlainPath;
  for (const StoreKind& kind : kKinds) {
    if (kind.scheme != scheme) continue;
    if (kind.open == nullptr) refuse(url, fmt::format("{} ({})", join(forms, ", or "), kind.why_not));
    return kind;
  }
  refuse(url, fmt::format("{} ({} stores are not supported)", join(forms, ", or "), excerpt(std::string(scheme))));
}

}  // namespace

std::unique_ptr<Store> open_store(const std::string& url, OpenMode mode) { return kind_of(url).open(url, mode); }

std::unique_ptr<Store> open_store_if_made(const std::string& url, OpenMode mode) {
  return kind_of(url).open_if_made(url, mode);
}

std::string resolve_store(const std::string& url, const fs::path& folder) { return kind_of(url).resolve(url, folder); }

std::string absolute_store(const std::string& url) { return kind_of(url).absolute(url); }

fs::path store_file(const std::string& url) {
  const StoreKind& kind = kind_of(url);
  if (kind.file == nullptr) refuse(url, "a store that is a file");
  return kind.file(url);
}

}  // namespace hfta::storage
