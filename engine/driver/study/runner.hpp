#pragma once
/// Tells which process runs a study, for code that only reads.

#include <optional>
#include <string>

#include "base/clock.hpp"
#include "engine/report/report.hpp"
#include "storage/store.hpp"

namespace hfta::engine {

/// The process that took the study last, and whether it shows signs of life; see storage::Store::life_sign. Writes
/// nothing and does not wait. nullopt: no process has ever taken the study.
[[nodiscard]] std::optional<Runner> runner_of(storage::Store& store, const std::string& study, const Clock& clock);

}  // namespace hfta::engine
