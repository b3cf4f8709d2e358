#pragma once
/// Reads the earlier study that a config's `warm_start` names.

#include "engine/config.hpp"
#include "search/history.hpp"

namespace hfta::engine {

/// The ended trials of the study that warm_start names, by number, at most the last 10'000, whose parameters are values
/// of the config's space; parameters that the space lacks are left out. Empty without a warm_start. Tells on standard
/// error how many there are. Throws Error{kConfig} if there is no such study, or if it has another metric or goal.
[[nodiscard]] search::History read_prior(const StudyConfig& config);

}  // namespace hfta::engine
