// hfta-tune topo

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/error.hpp"
#include "base/text.hpp"
#include "engine/allocation/scores.hpp"
#include "engine/cli/commands.hpp"
#include "engine/cli/output.hpp"
#include "engine/topology/machines.hpp"
#include "engine/topology/numa.hpp"
#include "engine/topology/readers.hpp"
#include "engine/topology/this_machine.hpp"

namespace hfta::engine {
namespace {

namespace po = boost::program_options;

Usage topo_usage() {
  Usage usage;
  usage.synopsis = "hfta-tune topo [options]";
  usage.about =
      "How the accelerators of a machine are connected: of this one, as NVIDIA's driver tells it, or of a file's. "
      "With\n"
      "it, the best set of each size, and the bandwidth of its rings.\n";
  usage.options.add_options()("format", po::value<std::string>()->value_name("table|yaml"),
                              "table unless told; yaml: a file for --topology");
  add_topology_options(usage.options);
  return usage;
}

// The set of each size whose rings have the most bandwidth.
std::string best_sets(const Topology& topology) {
  const Scores scores(topology);
  std::string text = fmt::format("{:>9}  {:>5}  {:>10}  {}\n", "devices", "GB/s", "MAPA", "best set");
  for (int size = 2; size <= std::min(topology.size(), kMostRequested); ++size) {
    const std::vector<DeviceSet>& sets = scores.sets(size);
    const DeviceSet best = *std::max_element(sets.begin(), sets.end(), [&](DeviceSet a, DeviceSet b) {
      return std::pair(scores.rings(a), scores.within(a)) < std::pair(scores.rings(b), scores.within(b));
    });
    text += fmt::format("{:>9}  {:>5.0f}  {:>10.1f}  {}\n", size, scores.rings(best), scores.mapa(best), to_text(best));
  }
  return text;
}

std::string nodes_text() {
  std::string text;
  for (const NumaNode& node : numa_nodes()) {
    text += fmt::format("NUMA node {}: {} CPUs, {} to {}\n", node.number, node.cpus.size(), node.cpus.front(),
                        node.cpus.back());
  }
  return text;
}

}  // namespace

void add_topology_options(po::options_description& options) {
  options.add_options()("topology", po::value<std::string>()->value_name("FILE"),
                        "of that file: YAML, or what nvidia-smi topo -m prints")(
      "machine", po::value<std::string>()->value_name("NAME"),
      "of a machine known by name: dgx-1v, dgx-1p, summit, torus-16, cube-mesh-16; or drawn:SEED");
}

Topology topology_from(const Arguments& arguments) {
  constexpr int kDrawn = 8;
  const auto file = arguments.get<std::string>("topology"), name = arguments.get<std::string>("machine");
  if (file && name) throw Error(ErrorKind::kConfig, "found --topology and --machine, wanted one of them");
  if (file) return read_topology(*file);
  if (!name) return this_machine();
  if (!name->starts_with("drawn:")) return built_in_machine(*name, "--machine");
  const std::string seed = name->substr(6);
  if (seed.empty() || seed.size() > 18 || seed.find_first_not_of("0123456789") != std::string::npos) {
    throw Error(ErrorKind::kConfig, fmt::format("--machine: found '{}', wanted drawn:SEED", excerpt(*name)));
  }
  return drawn_machine(std::stoull(seed), kDrawn);
}

int topo_command(const Words& words) {
  const Usage usage = topo_usage();
  const Arguments arguments(usage, words);
  if (arguments.help()) return print(help_text(usage)), 0;
  const std::string format =
      one_of("--format", arguments.get<std::string>("format").value_or("table"), {"table", "yaml"});
  const bool here = !arguments.has("topology") && !arguments.has("machine");
  if (here && format == "table") print(nodes_text());  // a machine without a GPU has nodes, too
  const Topology topology = topology_from(arguments);
  if (format == "yaml") return print(to_yaml(topology)), 0;
  print(fmt::format("{}\n{}", printable(topology.name()), to_table(topology)));
  if (topology.size() > 1) print("\n" + best_sets(topology));
  return 0;
}

}  // namespace hfta::engine
