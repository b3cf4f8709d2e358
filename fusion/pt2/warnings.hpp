#pragma once
/// What a user of an exported model should know before training it.

#include <string>
#include <vector>

#include "fusion/graph.hpp"

namespace hfta::fusion::pt2 {

/// One line each: nothing trains as in training mode, random ops that evaluation replaces by their mean.
[[nodiscard]] std::vector<std::string> warnings_of(const Graph& graph);

}  // namespace hfta::fusion::pt2
