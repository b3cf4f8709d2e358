#pragma once
/// A copy of a store and of its states, taken while others go on with it.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/faults.hpp"

namespace hfta::storage {

/// What a backup holds.
struct Backup {
  int studies = 0, trials = 0, rounds = 0, states = 0;
  std::uint64_t bytes = 0;          ///< Of all its files.
  std::vector<std::string> damage;  ///< What was not as it was written, in the store as in its copy; a line each.
};

/// Copies the store `path`, as it is at one moment, to `destination`, and the states that belong to that moment to
/// `<destination>.hfta`: none is ahead of the copied table, each verifies, the best COMPLETE trials' weights are there
/// where the store has them. A study that goes on from the copy, where it lies or moved over the store with its folder,
/// comes to what it would have come to.
///
/// Works in a folder beside the destination. States are put in place first and the store last, so that where the store
/// is, the backup is whole; all is durable when this returns. A run that goes on meanwhile is not held up (see
/// Store::copy_to). Throws Error{kConfig} if `destination` or its folder of states is there already, or cannot be a
/// file; Error{kStorage} or Error{kLocked} if something cannot be read or written: then nothing is left.
/// `faults`: besides those of SystemFiles, "store-copied", "states-placed", "backup-placed".
[[nodiscard]] Backup back_up(const std::filesystem::path& path, const std::filesystem::path& destination,
                             const Faults& faults);

/// Copies the file of the store `path`, as it lies or as another program leaves it, to `<store>.before-repair`, or to
/// the first of `<store>.before-repair-2`, -3, ... that is not taken. A journal that a killed process left is copied
/// beside it. Durable when it returns; returns the copy's path. Throws Error{kStorage} or Error{kLocked}.
[[nodiscard]] std::filesystem::path keep_before_repair(const std::filesystem::path& path);

}  // namespace hfta::storage
