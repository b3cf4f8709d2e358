#pragma once
/// --set key.path=value. Internal to engine/config.

#include <string>

#include "engine/config.hpp"
#include "engine/config/node.hpp"

namespace hfta::engine::configuration {

/// Puts the value, read as YAML ("0.1", "[1, 2]", "{name: sgd}"), at the key path: keys of maps (added if absent) and
/// 0-based positions in lists. A word that stands for {name: word} becomes that map where the path goes below it.
/// Throws Error{kConfig}: "--set model.foo: ...".
void apply_override(Node& root, const Override& override);

}  // namespace hfta::engine::configuration
