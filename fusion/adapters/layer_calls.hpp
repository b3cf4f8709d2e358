#pragma once
/// The calls of a graph that are layers which can be adapted. Internal to fusion/adapters.

#include <cstddef>
#include <string>
#include <vector>

#include "fusion/adapters.hpp"

namespace hfta::fusion::adapters {

struct LayerCall {
  std::size_t node = 0;  ///< In Graph::nodes.
  LoraKind kind = LoraKind::kLinear;
  std::string module;
  std::size_t weight = 0;  ///< In Graph::weights.
  ValueId input = kNoValue;
};

/// In order. Those are left out whose weight is computed or belongs to no module of its own.
[[nodiscard]] std::vector<LayerCall> layer_calls(const Graph& graph);

}  // namespace hfta::fusion::adapters
