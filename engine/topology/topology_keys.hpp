#pragma once
/// A topology's keys within a file that has more. Internal to engine/topology and engine/planner.

#include "engine/config/typed_file.hpp"
#include "engine/topology/topology.hpp"

namespace hfta::engine {

/// Reads name, devices, nodes, nvlink, pcie and links of a map; see read_topology_yaml(). Throws as that does, but says
/// nothing of other keys.
[[nodiscard]] Topology read_topology_keys(const configuration::TypedFile& file, const configuration::Node& root);

}  // namespace hfta::engine
