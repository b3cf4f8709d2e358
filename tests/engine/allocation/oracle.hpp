#pragma once
/// What policies should choose and sets should score, found by trying everything: all orders of all sets.

#include <vector>

#include "engine/allocation/scores.hpp"

namespace hfta::engine::testing {

/// Every ring through a set, each once in each direction at most: the devices in order, the lowest first.
[[nodiscard]] std::vector<std::vector<int>> rings_of(DeviceSet set);

[[nodiscard]] double oracle_mapa(const Topology& topology, DeviceSet set);
[[nodiscard]] double oracle_total(const Topology& topology, DeviceSet set);
[[nodiscard]] double oracle_within(const Topology& topology, DeviceSet set);
/// By packing whole rings of NVLinks, as many as fit, with one more lane per link as the only bound.
[[nodiscard]] double oracle_rings(const Topology& topology, DeviceSet set);

/// All sets of a size in `free`, in the order in which the smallest numbers come first.
[[nodiscard]] std::vector<DeviceSet> sets_in(DeviceSet free, int size, int devices);

/// The same machine with its devices numbered otherwise: device i becomes `order[i]`.
[[nodiscard]] Topology relabelled(const Topology& topology, const std::vector<int>& order);
[[nodiscard]] DeviceSet relabelled(DeviceSet set, const std::vector<int>& order);

}  // namespace hfta::engine::testing
