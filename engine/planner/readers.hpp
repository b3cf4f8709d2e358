#pragma once
/// Clusters and graphs from files. Files are data from strangers: whatever they hold, the readers end with a value that
/// the planner can take, or an Error{kConfig} "file:line: key: found ..., wanted ...".

#include <filesystem>
#include <string>
#include <string_view>

#include "engine/planner/cluster.hpp"
#include "engine/planner/graph.hpp"

namespace hfta::engine::planner {

/// A YAML file: the keys of a topology (see read_topology_yaml(); `links` connect devices of one machine), and
///
///     machines: [0, 0, 1, 1]          # of each device; all in one unless given
///     ports: [12.5, 6.25]             # GB/s of each machine's port, or one number for all; 1 unless given
///     tflops: [14, 14, 11.3, 11.3]    # of each device, or one number; needed
///     bandwidth: [900, 900, 484, 484] # GB/s of its memory; needed
///     memory: [16, 16, 11, 11]        # GiB; needed
///     power: [2, 2, 1, 1]             # its share under CP; tflops unless given
///     efficiency: 0.5                 # the part of tflops that ops reach
///     launch: 10                      # microseconds of every op
///     latency: 12                     # microseconds of every transfer
[[nodiscard]] Cluster read_cluster(std::string_view text, const std::string& file);
/// The cluster of a file, or "heterog-8", which is paper_cluster(). A word that ends in .yaml or .yml is a file.
[[nodiscard]] Cluster cluster_named(const std::string& word);

/// A YAML file (or JSON, which is YAML):
///
///     name: a net            # the file's name unless given
///     samples: 192           # of a batch, of all devices together
///     slots: 1               # models that train as one array; 1 unless given
///     bytes: 4               # of a number; 4 unless given
///     states: 1              # numbers that the optimizer keeps for each weight; 1 unless given
///     ops:
///       - {name: conv1, flops: 1.7e8, weights: 1728, outputs: 3211264}
///       - {name: relu1, outputs: 3211264, inputs: [conv1]}
///
/// flops, weights and outputs as in Op, 0 unless given. An op without `inputs` reads the one before it; `inputs: []`
/// reads data. Names occur once.
[[nodiscard]] Graph read_graph(std::string_view text, const std::string& file);
/// The graph of a file, or the net of that name (see nets.hpp). A word that ends in .yaml, .yml or .json is a file.
[[nodiscard]] Graph graph_named(const std::string& word);

}  // namespace hfta::engine::planner
