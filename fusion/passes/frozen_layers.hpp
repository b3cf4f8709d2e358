#pragma once
/// Layers with frozen weights: what they cost, and what keeps them from being the same for all trials.

#include <cstdint>
#include <string>
#include <vector>

#include "fusion/graph.hpp"
#include "fusion/passes/rows.hpp"

namespace hfta::fusion {

/// By weight: whether it has the values of the model's file, or of its kind, whoever trains, and no call writes it.
[[nodiscard]] std::vector<bool> frozen_weights(const Graph& graph);

/// Multiplications of one sample, about: of products, convolutions, attention and recurrent layers; other calls: 0.
[[nodiscard]] double multiplies_of(const Node& node, const Graph& graph);

/// Why layers that data and frozen weights alone reach do not depend on one sample alone, naming the first call that is
/// to blame, and what to write instead; "": all of them do. `depends_on`: dependence_of(graph, frozen).
[[nodiscard]] std::string what_prevents_sharing(const Graph& graph, const std::vector<bool>& frozen,
                                                const std::vector<DependsOn>& depends_on);

}  // namespace hfta::fusion
