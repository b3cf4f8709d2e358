#pragma once
/// Whether the ranks of a group (fusion/collectives.hpp) can be the stages of a pipeline that trains a model.

#include <string>

#include "fusion/graph.hpp"
#include "fusion/recipe.hpp"

namespace hfta::fusion {

/// Why a pipeline of so many stages cannot train it, naming an op and its place where one is to blame; "" if it can.
/// Compiles the stages to see. `model`: without its loss.
[[nodiscard]] std::string why_not_staged(const Graph& model, const Recipe& recipe, int stages);

}  // namespace hfta::fusion
