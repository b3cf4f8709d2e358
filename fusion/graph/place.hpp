#pragma once
/// Calls of a graph, as messages name them. Internal to fusion.

#include <string>

#include "fusion/graph.hpp"

namespace hfta::fusion {

/// "model.py:3: head (aten::linear)": where the user wrote the call, the module that makes it, and its op.
[[nodiscard]] std::string place_of(const Node& node);

}  // namespace hfta::fusion
