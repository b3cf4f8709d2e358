#pragma once
/// Warnings that a user should read before training an exported model.

#include <string>
#include <vector>

#include "fusion/graph.hpp"

namespace hfta::fusion::pt2 {

/// One line each: nothing trains as in training mode, random ops that evaluation replaces by their mean.
[[nodiscard]] std::vector<std::string> warnings_of(const Graph& graph);

}  // namespace hfta::fusion::pt2
