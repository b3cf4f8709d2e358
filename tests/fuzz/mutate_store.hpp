#pragma once
// Stores with their contents damaged: still a database, but with other values, rows, tables and rules than we write.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/random.hpp"

namespace hfta::testing {

/// Changes bytes within [data, data + size), to at most `most`; returns how many there are then (LLVMFuzzerMutate).
using ChangeBytes = std::size_t (*)(std::uint8_t* data, std::size_t size, std::size_t most);

/// The database with one to three of its values, rows or statements changed, texts by `change`; empty if SQLite cannot
/// open it or cannot make the change.
[[nodiscard]] std::vector<std::uint8_t> mutate_store(const std::uint8_t* data, std::size_t size, CountedRandom& random,
                                                     ChangeBytes change);

}  // namespace hfta::testing
