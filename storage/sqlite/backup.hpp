#pragma once
/// A copy of a store and of its states, taken while other programs may use them.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/faults.hpp"

namespace hfta::storage {

/// The contents of a backup.
struct Backup {
  int studies = 0, trials = 0, rounds = 0, states = 0;
  std::uint64_t bytes = 0;          ///< Size of all its files.
  std::vector<std::string> damage;  ///< Damage in the store, which its copy has too; a line each.
};

/// Copies the store `path`, as it is at one moment, to `destination`, and the states that belong to that moment to
/// `<destination>.hfta`: none is ahead of the copied tables, each has the right checksum, and the best COMPLETE
/// trials' weights are there if the store has them. A study that is resumed from the copy, in its place or moved over
/// the store with its folder, ends with the same results as without the backup.
///
/// Works in a folder beside the destination. States are put in place first and the store last, so that the backup is
/// complete once the store is there; all is durable when this returns. A run that continues meanwhile is not delayed
/// (see Store::copy_to). Throws Error{kConfig} if `destination` or its folder of states is there already, or cannot be
/// a file; Error{kStorage} or Error{kLocked} if something cannot be read or written: then nothing is left. `faults`:
/// besides those of SystemFiles, "store-copied", "states-placed", "backup-placed".
[[nodiscard]] Backup back_up(const std::filesystem::path& path, const std::filesystem::path& destination,
                             const Faults& faults);

/// Copies the file of the store `path`, in its current state or as another program leaves it, to
/// `<store>.before-repair`, or to the first of `<store>.before-repair-2`, -3, ... that is not taken. A journal that a
/// killed process left is copied beside it. Durable when it returns; returns the copy's path. Throws Error{kStorage} or
/// Error{kLocked}.
[[nodiscard]] std::filesystem::path keep_before_repair(const std::filesystem::path& path);

}  // namespace hfta::storage
