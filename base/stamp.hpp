#pragma once
/// Tells whether a file was written since it was last looked at, without reading it.

#include <filesystem>
#include <map>
#include <string>

struct stat;

namespace hfta {

/// A text that tells a file from another, and from itself before it was changed: its device, inode, size and time of
/// the last change. "" if the file is not there.
[[nodiscard]] std::string stamp_of(const std::filesystem::path& path);

/// The same of a file that is open, from what fstat says of it.
[[nodiscard]] std::string stamp_of(const struct stat& status);

/// Stamps by path.
using FileStamps = std::map<std::filesystem::path, std::string>;

}  // namespace hfta
