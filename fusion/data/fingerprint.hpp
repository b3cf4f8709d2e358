#pragma once
/// What a set of data is known by when it is read again. Internal to fusion/data.

#include <cstdint>
#include <string>
#include <vector>

#include "fusion/dataset.hpp"

namespace hfta::fusion {

/// A checksum of the sets' numbers in their order, as they are stored, and of their fields' shapes and types; as
/// 16 hexadecimal digits. Of numbers in memory it changes with every one of them. Of those that lie in a file, which
/// are too many to be loaded, it takes kPieces pieces of 64 KiB, evenly spread, the first and the last among them.
[[nodiscard]] std::string fingerprint_of(const std::vector<const Dataset*>& sets);

inline constexpr std::int64_t kPieces = 256;

}  // namespace hfta::fusion
