#pragma once
/// What a set of data is known by when it is read again. Internal to fusion/data.

#include <cstdint>
#include <string>
#include <vector>

#include "fusion/dataset.hpp"

namespace hfta::fusion {

/// A checksum of the sets' numbers in their order, as they are stored, and of their fields' shapes and types; as 16
/// hexadecimal digits. It is the same wherever the numbers lie, in memory or in a file. For an array of up to
/// kWholeBytes it changes with every number; from a larger one it takes kPieces pieces of 64 KiB, evenly spread, the
/// first and the last among them.
/// `groups`: the groups for folds, one number per sample; empty: none.
[[nodiscard]] std::string fingerprint_of(const std::vector<const Dataset*>& sets,
                                         const std::vector<std::int64_t>& groups = {});

inline constexpr std::int64_t kWholeBytes = std::int64_t{1} << 30;
inline constexpr std::int64_t kPieces = 256;

}  // namespace hfta::fusion
