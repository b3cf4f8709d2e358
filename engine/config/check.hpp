#pragma once
/// Trying a config out over its whole search space, before anything is created. Internal to engine/config.

#include "engine/config.hpp"

namespace hfta::engine::configuration {

/// The parameters of a trial from which a check varies some: each parameter at its first extreme.
[[nodiscard]] trials::Params base_params(const trials::Space& space);

/// Reads the task for every combination of the shape-changing parameters' values (256 of them where there are more),
/// and for each extreme of the others; where the shape of the data is known without reading them, builds the graphs
/// of layers too. Parameters that are not `used` in the task are left out. Throws Error{kConfig} for the first that
/// does not fit.
void check_space(const StudyConfig& config, const std::set<std::string>& used);

}  // namespace hfta::engine::configuration
