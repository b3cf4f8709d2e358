#pragma once
/// What a program did to a folder, one change after another, and what a crash after any of them leaves there.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace hfta::testing {

/// A folder's content: bytes by relative path; folders end in '/'.
using Tree = std::map<std::string, std::string>;

[[nodiscard]] Tree read_tree(const std::filesystem::path& folder);
void write_tree(const std::filesystem::path& folder, const Tree& tree);

/// What ends the program.
enum class Crash {
  kKill,      ///< kill -9: every change is there.
  kStrict,    ///< Power loss. A file has what was synced; a name is there, or gone, once its folder was synced.
  kJournaled  ///< Power loss. The same, but any sync makes all changes of names before it last, as ext4 and xfs do.
};

/// A folder under a program whose changes disk_log.cpp wrote down.
class RecordedDisk {
 public:
  /// `before`: the folder when the program began, all of it durable.
  RecordedDisk(const std::filesystem::path& log, const Tree& before);

  struct Left {
    Tree tree;
    std::size_t told = 0;   ///< Bytes that standard error had by then.
    std::size_t after = 0;  ///< Changes that the program had made.
  };
  /// What a crash leaves, for every prefix of the log. Of several that leave the same, only the last, which had told
  /// most.
  [[nodiscard]] std::vector<Left> after_every_change(Crash crash) const;

 private:
  struct Change {
    std::string what, path, to;
    std::uint64_t file = 0, number = 0;
    std::string data;
    std::size_t told = 0;
  };
  class State;
  std::vector<Change> changes_;
  Tree before_;
};

}  // namespace hfta::testing
