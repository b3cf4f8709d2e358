#pragma once
/// The part of a config that all trials share: method, metric, search space, packing. Internal to engine/config.

#include <nlohmann/json_fwd.hpp>

#include "engine/config.hpp"
#include "engine/config/node.hpp"
#include "engine/config/reader.hpp"

namespace hfta::engine::configuration {

/// The map `parameters`. Throws Error{kConfig} with the place of what no distribution can be made of.
[[nodiscard]] trials::Space read_space(Reader& root, const std::string& file, nlohmann::json& record);

/// Everything else but the task. `config.folder`, `config.file` and `config.space` are set already.
void read_study(Reader& root, const std::string& file, StudyConfig& config);

}  // namespace hfta::engine::configuration
