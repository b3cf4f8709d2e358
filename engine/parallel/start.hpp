#pragma once
/// The options for the trainer of another process, as a message.

#include <nlohmann/json_fwd.hpp>

#include "engine/module.hpp"

namespace hfta::engine {

/// All options but the group, and the choices' cache: a member runs as rank 0 does.
[[nodiscard]] nlohmann::json start_json(const TrainerOptions& options);
/// Reads the config again. Throws as parse_config, and nlohmann::json::exception for another form.
[[nodiscard]] TrainerOptions options_from(const nlohmann::json& start);

}  // namespace hfta::engine
