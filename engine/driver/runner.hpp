#pragma once
/// Who runs a study, for those who only look.

#include <filesystem>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "engine/report/report.hpp"
#include "storage/store.hpp"

namespace hfta::engine {

/// Who took the study last, and whether it shows signs of life: its lock, where it runs on this host, and the age of
/// its last heartbeat. Writes nothing, waits for nothing. nullopt: nobody ever has. See StudyLease.
[[nodiscard]] std::optional<Runner> runner_of(storage::Store& store, const std::string& study,
                                              const std::filesystem::path& folder, const Clock& clock);

}  // namespace hfta::engine
