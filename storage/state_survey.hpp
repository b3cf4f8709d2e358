#pragma once
/// Lists a folder of states, for code that only reads.

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace hfta::storage {

/// One name in the folder.
struct StateEntry {
  enum class Kind {
    kState,      ///< Its size and checksum are those in its name.
    kDamaged,    ///< They are not.
    kUnread,     ///< It could not be read.
    kTemporary,  ///< A state that is being written, or was when its process was killed.
    kUnknown,    ///< A file that no run wrote.
    kNoFile,     ///< A link, folder, pipe or device.
  };
  std::string name;
  Kind kind = Kind::kUnknown;
  int trial = 0, epoch = 0;  ///< Set for kState, kDamaged and kUnread.
  std::size_t bytes = 0;     ///< Size that the name states, for the same kinds.
  std::string detail;        ///< Kind of a kNoFile ("a pipe"), or why the file could not be read.
};

/// Every entry of `folder`, which is `root` or lies below it, by name; the files of states are read whole, one after
/// the other. No link below `root` is followed. Empty if the folder is absent; files that vanish meanwhile are left
/// out. Throws Error{kStorage} if it cannot be listed, or is no folder.
[[nodiscard]] std::vector<StateEntry> survey_states(const std::filesystem::path& root,
                                                    const std::filesystem::path& folder);

}  // namespace hfta::storage
