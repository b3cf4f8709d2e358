#pragma once
/// Parameters of a trial as JSON, exactly.

#include <nlohmann/json_fwd.hpp>

#include "trials/trial.hpp"

namespace hfta::engine {

/// [[name, value], ...]
[[nodiscard]] nlohmann::json params_json(const trials::Params& params);
/// Throws nlohmann::json::exception for another form.
[[nodiscard]] trials::Params params_from(const nlohmann::json& list);

}  // namespace hfta::engine
