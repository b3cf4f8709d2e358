#pragma once
/// A folder for the moment.

#include <filesystem>
#include <string>

#include "base/folder.hpp"

namespace hfta {

/// Removed with everything in it when this goes; one whose process was killed, when the next of its name is made there.
class TemporaryFolder {
 public:
  /// Throws Error{kStorage} if it cannot be made. `name`: how its name begins, for who finds it after a crash.
  /// `place`: the folder to make it in; "": in memory where that is possible.
  explicit TemporaryFolder(const std::string& name, const std::filesystem::path& place = {});
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  Descriptor lock_;  ///< Of the folder itself: held as long as the process lives.
};

}  // namespace hfta
