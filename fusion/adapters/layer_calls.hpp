#pragma once
/// The calls of a graph that are layers which can be adapted. Internal to fusion/adapters.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "fusion/adapters.hpp"

namespace hfta::fusion::adapters {

struct LayerCall {
  std::size_t node = 0;  ///< Index into Graph::nodes of the call that gives the layer's output.
  LoraKind kind = LoraKind::kLinear;
  std::string module;
  std::optional<std::size_t> weight;  ///< Index into Graph::weights; unset: the weight is computed from integers.
  Shape shape;                        ///< The weight's, as `kind` has it.
  DType dtype = DType::kFloat32;      ///< Type of the layer's products.
  ValueId input = kNoValue;
};

/// The layers, in order of their calls. Those are left out whose weight is computed, but for quantized_calls(), or
/// belongs to no module of its own.
[[nodiscard]] std::vector<LayerCall> layer_calls(const Graph& graph);

/// Linear layers whose weight is computed from integers that their module holds, in order.
[[nodiscard]] std::vector<LayerCall> quantized_calls(const Graph& graph);

}  // namespace hfta::fusion::adapters
