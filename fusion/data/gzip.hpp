#pragma once
/// Gzipped files. Internal to fusion/data.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace hfta::fusion {

/// Inflates a gzip file (RFC 1952, one member or several) and verifies its checksums. Gives at most 16 MiB or 100
/// times the file's size, whichever is more: real tables seldom shrink to a hundredth, and what claims to is more
/// likely made to fill the memory. Throws Error{kConfig} that begins with `place`.
[[nodiscard]] std::vector<std::byte> inflate_gzip(std::span<const std::byte> bytes, const std::string& place);

}  // namespace hfta::fusion
