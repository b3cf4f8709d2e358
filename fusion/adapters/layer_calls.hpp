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
  bool own = true;  ///< The module makes the call; else another one does, with the module's weight.
};

/// The layers, in order of their calls. Those are left out whose weight is computed, but for quantized_calls(), or
/// belongs to no module of its own.
[[nodiscard]] std::vector<LayerCall> layer_calls(const Graph& graph);

/// Those of layer_calls() that get an adapter, as a wrapper around each module would adapt them: its own calls, and
/// only of a module that makes none, those that others make with its weight. All of a module's are of one kind.
[[nodiscard]] std::vector<LayerCall> adapted_calls(const Graph& graph);

/// By index into Graph::weights: the calls that read the weight and are none of `adapted`, in order. They point into
/// the graph.
[[nodiscard]] std::vector<std::vector<const Node*>> other_readers(const Graph& graph,
                                                                  const std::vector<LayerCall>& adapted);

/// Linear layers whose weight is computed from integers that their module holds, in order.
[[nodiscard]] std::vector<LayerCall> quantized_calls(const Graph& graph);

}  // namespace hfta::fusion::adapters
