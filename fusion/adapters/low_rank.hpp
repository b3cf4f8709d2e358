#pragma once
/// What a graph makes of the two factors of an adapter. Internal to fusion/adapters.

#include <optional>
#include <string>

#include "fusion/adapters/layer_calls.hpp"
#include "fusion/graph.hpp"

namespace hfta::fusion::adapters {

/// The number that an argument is: a literal, or a hyperparameter's value. nullopt: it is none.
[[nodiscard]] std::optional<double> number_in(const Graph& graph, const Arg& arg);

struct LowRank {
  double scale = 1;
  /// The layer's module pads its input, as with a padding_mode, and A's convolution pads by zeros of its own.
  bool pads_apart = false;
};

/// The number s of a layer that gives W x + s B A x (Hu et al., arXiv:2106.09685, equation 3), x the same in both. In
/// between may stand dropout, changes of type, and numbers that are multiplied. `layer`: the module of its own call;
/// `a`, `b`: names of weights. Throws Error{kConfig} where the graph makes anything else of A, of B or of W x, which no
/// change of W would do.
[[nodiscard]] LowRank low_rank(const Graph& graph, const std::string& layer, const std::string& a,
                               const std::string& b);

}  // namespace hfta::fusion::adapters
