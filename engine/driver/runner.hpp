#pragma once
/// Who runs a study, for those who only look.

#include <optional>
#include <string>

#include "base/clock.hpp"
#include "engine/report/report.hpp"
#include "storage/store.hpp"

namespace hfta::engine {

/// Who took the study last, and whether it shows signs of life; see storage::Store::life_sign. Writes nothing, waits
/// for nothing. nullopt: nobody ever has.
[[nodiscard]] std::optional<Runner> runner_of(storage::Store& store, const std::string& study, const Clock& clock);

}  // namespace hfta::engine
