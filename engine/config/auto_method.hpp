#pragma once
/// `method: auto`, also where no method is named. Internal to engine/config.

#include <optional>
#include <string>

#include "engine/config.hpp"
#include "engine/config/node.hpp"

namespace hfta::engine::configuration {

/// Writes the method that is chosen, and the rule of early stopping where the config has none, into the tree of a
/// config that leaves the method open; nullopt, and nothing is done, where it names one. `begun`: what was chosen when
/// the study was begun, which stays. Throws as the readers of the keys that the choice depends on.
[[nodiscard]] std::optional<AutoChoice> settle_method(Node& root, const std::string& file,
                                                      const std::optional<AutoChoice>& begun);

}  // namespace hfta::engine::configuration
