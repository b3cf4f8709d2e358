#pragma once
/// A temporary folder.

#include <filesystem>
#include <string>

#include "base/folder.hpp"

namespace hfta {

/// A folder that is deleted with its contents on destruction or, after a kill, when the next of its name is made there.
class TemporaryFolder {
 public:
  /// Throws Error{kStorage} if it cannot be made. `name`: how its name begins, for whoever finds it after a crash.
  /// `place`: the folder to make it in; "": in memory where that is possible.
  explicit TemporaryFolder(const std::string& name, const std::filesystem::path& place = {});
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  Descriptor lock_;  ///< The open folder, locked to show other processes that it is in use.
};

}  // namespace hfta
