// A cluster as YAML.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "engine/planner/readers.hpp"
#include "engine/topology/topology_keys.hpp"

namespace hfta::engine::planner {
namespace {

using configuration::Node;
using configuration::TypedFile;

constexpr double kLeast = 1e-6, kMost = 1e6;

/// A list of `count` numbers, or one number for all.
std::vector<double> numbers(const TypedFile& file, const Node& node, const std::string& key, std::size_t count,
                            const std::string& unit) {
  if (node.kind == Node::Kind::kScalar) return std::vector<double>(count, file.number(node, key, kLeast, kMost, unit));
  const std::string wanted = fmt::format("{}: one number, or a list of {}", unit, count);
  const std::vector<Node>& items = file.list(node, key, wanted);
  if (items.size() != count) file.wrong(node, key, wanted);
  std::vector<double> found;
  for (const Node& item : items) found.push_back(file.number(item, key, kLeast, kMost, unit));
  return found;
}

/// The numbers of a key, which must be there.
std::vector<double> needed(const TypedFile& file, const Node& root, const std::string& key, std::size_t count,
                           const std::string& unit) {
  const Node* node = root.find(key);
  if (node == nullptr) file.wrong(root, key, unit);
  return numbers(file, *node, key, count, unit);
}

std::vector<int> machines_of(const TypedFile& file, const Node& root, int devices) {
  const Node* node = root.find("machines");
  std::vector<int> machines(static_cast<std::size_t>(devices), 0);
  if (node == nullptr) return machines;
  const std::string wanted = fmt::format("a list of {}, one for each device", devices);
  const std::vector<Node>& items = file.list(*node, "machines", wanted);
  if (items.size() != machines.size()) file.wrong(*node, "machines", wanted);
  for (std::size_t i = 0; i < items.size(); ++i) machines[i] = file.integer(items[i], "machines", 0, devices - 1);
  return machines;
}

}  // namespace

Cluster read_cluster(std::string_view text, const std::string& name) {
  const TypedFile file(name);
  const Node root = file.root(text, "devices: ..., tflops: ..., bandwidth: ... and memory: ...");
  file.check_keys(root, {"name", "devices", "nodes", "nvlink", "pcie", "links", "machines", "ports", "tflops",
                         "bandwidth", "memory", "power", "efficiency", "launch", "latency"});
  Cluster cluster;
  cluster.links = read_topology_keys(file, root);
  const auto count = static_cast<std::size_t>(cluster.links.size());
  const std::vector<int> machines = machines_of(file, root, cluster.links.size());
  const std::vector<double> tflops = needed(file, root, "tflops", count, "TFLOPS");
  const std::vector<double> bandwidth = needed(file, root, "bandwidth", count, "GB/s of memory");
  const std::vector<double> memory = needed(file, root, "memory", count, "GiB");
  const Node* power = root.find("power");
  const std::vector<double> shares = power == nullptr ? tflops : numbers(file, *power, "power", count, "shares");
  for (std::size_t i = 0; i < count; ++i) {
    cluster.devices.push_back({tflops[i], bandwidth[i], memory[i], machines[i], shares[i]});
  }
  const auto most = static_cast<std::size_t>(*std::max_element(machines.begin(), machines.end())) + 1;
  const Node* ports = root.find("ports");
  cluster.ports = ports == nullptr ? std::vector<double>(most, 1) : numbers(file, *ports, "ports", most, "GB/s");
  cluster.efficiency = file.number_of(root, "efficiency", cluster.efficiency, kLeast, 1, "a part");
  constexpr double kMicro = 1e-6;
  cluster.launch = file.number_of(root, "launch", cluster.launch / kMicro, 0, kMost, "microseconds") * kMicro;
  cluster.latency = file.number_of(root, "latency", cluster.latency / kMicro, 0, kMost, "microseconds") * kMicro;
  return cluster;
}

Cluster cluster_named(const std::string& word) {
  if (word.ends_with(".yaml") || word.ends_with(".yml")) return read_cluster(configuration::read_text(word), word);
  if (word == "heterog-8") return paper_cluster();
  throw Error(ErrorKind::kConfig,
              fmt::format("--cluster: found '{}', wanted a .yaml file, or heterog-8", excerpt(word)));
}

}  // namespace hfta::engine::planner
