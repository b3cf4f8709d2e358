#pragma once
/// Paths as they are kept where a folder and what lies in it may move together.

#include <filesystem>

namespace hfta {

/// `file` from `folder` on, both as seen from the working folder. A file that does not lie in the folder does not move
/// with it: its path is absolute. An empty path stays empty.
[[nodiscard]] std::filesystem::path path_from(const std::filesystem::path& folder, const std::filesystem::path& file);

}  // namespace hfta
