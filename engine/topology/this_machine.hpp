#pragma once
/// The topology of the machine that this runs on, as NVIDIA's driver tells it.

#include <filesystem>
#include <string>

#include "engine/topology/topology.hpp"

namespace hfta::engine {

/// The machine's NVIDIA GPUs, their NVLinks (those to a switch lead to every GPU that has such links too), the paths
/// between them, and their NUMA nodes. Asks NVML, the driver's management library, which is loaded by this call;
/// nothing is linked. Throws Error{kDevice} if there is no such library, no GPU, or more than Topology::kMostDevices.
/// `library`: a name for the loader, or a path. `pci`: where the kernel shows PCI devices.
[[nodiscard]] Topology this_machine(const std::string& library = "libnvidia-ml.so.1",
                                    const std::filesystem::path& pci = "/sys/bus/pci/devices");

}  // namespace hfta::engine
