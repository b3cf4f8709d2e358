#pragma once
/// Machines that are known by name, and machines that nobody has built.

#include <cstdint>
#include <string>
#include <vector>

#include "engine/topology/topology.hpp"

namespace hfta::engine {

/// dgx-1v, dgx-1p, summit, torus-16 and cube-mesh-16, those that MAPA (SC'21) looks at. The links of dgx-1v and dgx-1p
/// are those of the machines; summit is a node of six GPUs in two triangles. torus-16 is a 4 x 4 torus with two links
/// along rows and one along columns; cube-mesh-16 is two dgx-1v with a link between each GPU of the one and its
/// counterpart in the other.
[[nodiscard]] const std::vector<Topology>& built_in_machines();

/// The machine of that name. Throws Error{kConfig} naming `option` and the machines there are.
[[nodiscard]] const Topology& built_in_machine(const std::string& name, const std::string& option);

/// A machine drawn by a seed: two NUMA nodes of `devices` / 2 GPUs, up to six NVLinks at each GPU, one or two between a
/// pair. Deterministic. REQUIRES 2 <= devices <= Topology::kMostDevices.
[[nodiscard]] Topology drawn_machine(std::uint64_t seed, int devices);

}  // namespace hfta::engine
