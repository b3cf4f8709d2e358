#pragma once
/// Times as Optuna stores them: `YYYY-MM-DD HH:MM:SS.ffffff`, UTC. Private to storage/sqlite/.

#include <optional>
#include <string>
#include <string_view>

#include "trials/trial.hpp"

namespace hfta::storage {

[[nodiscard]] std::string utc_text(trials::UtcTime time);

/// The fraction may be absent or shorter. nullopt for anything else: times are for people and decide nothing, so a bad
/// one must not make a study unreadable.
[[nodiscard]] std::optional<trials::UtcTime> utc_from(std::string_view text);

}  // namespace hfta::storage
