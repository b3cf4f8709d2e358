#pragma once
/// Marks of holders as files: `lease.<token>` in the study's folder, locked, with a thread that counts beats in it.

#include <filesystem>
#include <memory>
#include <optional>

#include "base/clock.hpp"
#include "storage/liveness.hpp"
#include "storage/store.hpp"

namespace hfta::storage {

/// The marks in the study's folder, which is made where it is absent; see Store::marks. A holder on this host is known
/// to be dead by its lock. Throws Error{kStorage} naming the folder.
[[nodiscard]] std::unique_ptr<HolderMarks> make_holder_marks(const StatesPlace& place);

/// See Store::life_sign: by the lock where the holder runs on this host, else by the age of its last beat.
[[nodiscard]] std::optional<LifeSign> life_sign_in(const std::filesystem::path& folder, const Lease& lease,
                                                   const Clock& clock);

}  // namespace hfta::storage
