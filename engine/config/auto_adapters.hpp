#pragma once
/// `adapters: {lora: auto}`: the ready space of a fine-tuning. Internal to engine/config.

#include "engine/config/node.hpp"

namespace hfta::engine::configuration {

/// Writes out what `auto` stands for: the adapters' keys as references to parameters, those parameters, the
/// optimizer's lr and `early_stopping` as far as the config leaves them out. A parameter of the same name that the
/// config has is taken in its place. Does nothing to a config without it.
void expand_auto_lora(Node& root);

}  // namespace hfta::engine::configuration
