#pragma once
/// Working through the channels of large layers a panel at a time.

#include <vector>

#include "fusion/graph.hpp"

namespace hfta::fusion::cpu {

/// The graph with every chain `linear -> batch norm -> relu -> largest or mean over points` (batch norm and relu may be
/// missing, views may stand between) cut into chains of some channels each, whose results are joined: nothing in them
/// mixes channels. What one panel's passes write is then still in the cache when the next pass reads it, and the normed
/// values, which nobody needs afterwards, never reach memory. Chains that fit the cache as they are stay whole. `index`
/// goes along with the nodes; `n`: samples of a batch.
[[nodiscard]] Graph in_panels(const Graph& graph, std::vector<int>& index, std::int64_t n);

}  // namespace hfta::fusion::cpu
