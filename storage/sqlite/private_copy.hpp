#pragma once
/// Private copies of stores that cannot be read in place without writing to them. Private to storage/sqlite/.

#include <filesystem>
#include <memory>

#include "base/temporary_folder.hpp"

namespace hfta::storage {

/// A store and its journal or write-ahead log, in a temporary folder.
class PrivateCopy {
 public:
  enum class Reason {
    kHotJournal,  ///< A killed program left a half-written transaction, which must be taken back first.
    kLog,         ///< The file is in WAL mode: to read it, SQLite makes files beside it.
  };
  /// nullptr if the store can be read in place, or there is none. Throws Error{kStorage}, or Error{kLocked} if other
  /// programs change the files again and again while they are copied. REQUIRES that check_companions() let it pass.
  static std::unique_ptr<PrivateCopy> where_needed(const std::filesystem::path& store);
  /// Copies a store, whatever the reason. Throws as where_needed().
  PrivateCopy(const std::filesystem::path& store, Reason reason);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] Reason reason() const { return reason_; }

 private:
  TemporaryFolder folder_;
  std::filesystem::path path_;
  Reason reason_;
};

/// Copies the file in its current state, with its journal or log under the copy's name, to a file that is absent;
/// durable when it returns. Throws as where_needed().
void copy_as_it_lies(const std::filesystem::path& store, const std::filesystem::path& copy);

}  // namespace hfta::storage
