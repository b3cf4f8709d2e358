#pragma once
/// Topologies from files. Files are data from strangers: whatever they hold, the readers end with a Topology or an
/// Error.

#include <filesystem>
#include <string>
#include <string_view>

#include "engine/topology/topology.hpp"

namespace hfta::engine {

/// Reads what `nvidia-smi topo -m` prints, with or without colours, tabs kept or turned into spaces. `file` is named
/// in messages. Throws Error{kConfig} "file:line: found ..., wanted ...": no GPU, more than Topology::kMostDevices, one
/// that is there twice, a word that is no link, rows that are missing, or two directions that differ.
[[nodiscard]] Topology read_smi_text(std::string_view text, const std::string& file);

/// A YAML file:
///
///     name: my machine           # the file's name unless given
///     devices: [a, b, c, d]      # or their number
///     nodes: [0, 0, 1, 1]        # NUMA nodes; all unknown unless given
///     nvlink: 25                 # GB/s of an NVLink in one direction; 25 unless given
///     pcie: 10                   # GB/s of any other path; 10 unless given
///     links: [[0, 1, NV2], [2, 3, PIX]]
///
/// A pair that is not among `links` is connected by PHB within a node and by SYS between nodes. Names and pairs occur
/// once. Throws Error{kConfig} "file:line: key: found ..., wanted ...".
[[nodiscard]] Topology read_topology_yaml(std::string_view text, const std::string& file);

/// The file's topology: YAML where its name ends in .yaml or .yml, else what nvidia-smi prints. Throws Error{kConfig},
/// also if the file cannot be read or is larger than 1 MiB.
[[nodiscard]] Topology read_topology(const std::filesystem::path& file);

}  // namespace hfta::engine
