#pragma once
/// Models as lists of layers, the form that YAML (`model: {layers: [...]}`), C++ and the zoo share.
///
/// Layer names, arguments and defaults are torch.nn's (2.11) in snake case: linear, conv2d, batch_norm2d, max_pool2d,
/// dropout, ... `add` and `concat` join a named earlier output with the current one.

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "fusion/graph.hpp"

namespace hfta::fusion {

/// A layer's argument: number, flag, word, or a pair of numbers (kernel sizes).
using LayerArg = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>>;

/// One line of `layers:`. Positional arguments come first, then named ones; as in torch.nn, an argument may be given
/// either way.
struct LayerSpec {
  std::string kind = {};                  ///< "linear"
  std::string name = {};                  ///< Names the output for add/concat; "" means its position.
  std::vector<LayerArg> positional = {};  ///< {linear: [64, 10]}
  std::vector<std::pair<std::string, LayerArg>> named =
      {};                  ///< {linear: {in_features: 64, out_features: 10, bias: false}}
  std::string where = {};  ///< "digits.yaml:20"
};

/// What is known of a layer's argument before it has a value.
struct LayerArgInfo {
  std::string name = {};
  bool fusible = false;  ///< Reaches only per-slot vectors (dropout's p); otherwise it changes shapes or structure.
};

/// Every layer kind, for messages.
[[nodiscard]] const std::vector<std::string>& layer_kinds();

/// Arguments of a kind, in positional order; empty for an unknown kind (build_graph reports that).
[[nodiscard]] const std::vector<LayerArgInfo>& layer_args(const std::string& kind);

/// The graph of a list of layers on inputs of `input` ([N, ...], kBatch first). Weights are of `dtype` and get
/// PyTorch's default initialisation per layer kind.
/// Throws Error{kConfig}: "where: layers.2 (linear): found input [N, 128], wanted [N, 64]", unknown kinds and
/// arguments with the nearest valid one, arguments out of range.
[[nodiscard]] Graph build_graph(const std::vector<LayerSpec>& layers, const Shape& input, DType dtype);

}  // namespace hfta::fusion
