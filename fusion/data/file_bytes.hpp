#pragma once
/// Whole files of data, and the error that names their place. Internal to fusion/data.

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace hfta::fusion {

/// Reads a whole file. Throws Error{kConfig}.
[[nodiscard]] std::vector<std::byte> read_bytes(const std::filesystem::path& path, const std::string& place);

/// Throws Error{kConfig}: "<place>: <message>".
[[noreturn]] void fail_at(const std::string& place, const std::string& message);

}  // namespace hfta::fusion
