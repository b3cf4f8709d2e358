#pragma once
/// Finds the calls of a graph that can be computed before anything runs.

#include <cstdint>
#include <set>
#include <vector>

#include "fusion/graph.hpp"

namespace hfta::fusion::cpu {

/// Whether the call reads its first argument for its sizes and type only: new_zeros, ones_like.
[[nodiscard]] bool reads_shape_only(const Node& node);

/// By weight: whether it is a small constant of the model (a mask, a table of positions): stored, of at most
/// kMostKnownBytes, neither trained nor written by any call.
[[nodiscard]] std::vector<bool> constant_weights(const Graph& graph);
inline constexpr std::int64_t kMostKnownBytes = 1 << 20;

/// By node: whether its results depend on nothing but numbers, sizes and constant_weights, given a batch size. A call
/// depends on more if it reads another weight, an input, or such a result; if it draws at random or takes a number that
/// differs between slots; if what it gives is written in place by such a call; or if it is in `excluded`.
[[nodiscard]] std::vector<bool> known_calls(const Graph& graph, const std::set<std::size_t>& excluded = {});

}  // namespace hfta::fusion::cpu
