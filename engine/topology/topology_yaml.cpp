// A topology as YAML.

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.hpp"
#include "engine/config/typed_file.hpp"
#include "engine/topology/numa.hpp"
#include "engine/topology/readers.hpp"
#include "engine/topology/topology_keys.hpp"

namespace hfta::engine {
namespace {

using configuration::Node;
using configuration::TypedFile;

constexpr double kLeastBandwidth = 1e-6, kMostBandwidth = 1e6;

double bandwidth(const TypedFile& file, const Node& map, const std::string& key, double fallback) {
  return file.number_of(map, key, fallback, kLeastBandwidth, kMostBandwidth, "GB/s");
}

std::vector<Accelerator> devices_of(const TypedFile& file, const Node& root) {
  const std::string wanted = fmt::format("their names, or how many: 1 to {}", Topology::kMostDevices);
  const Node* node = root.find("devices");
  if (node == nullptr) file.wrong(root, "devices", wanted);
  std::vector<Accelerator> devices;
  if (node->kind == Node::Kind::kScalar) {
    const int count = file.integer(*node, "devices", 1, Topology::kMostDevices);
    for (int i = 0; i < count; ++i) devices.push_back({fmt::format("GPU{}", i), -1});
  } else {
    for (const Node& name : file.list(*node, "devices", wanted)) {
      if (name.kind != Node::Kind::kScalar || name.is_null()) file.wrong(name, "devices", "a name");
      const std::string called = plain_name(name.text);
      const auto same = [&](const Accelerator& other) { return other.name == called; };
      if (std::any_of(devices.begin(), devices.end(), same)) file.wrong(name, "devices", "each name once");
      devices.push_back({called, -1});
    }
  }
  if (devices.empty() || devices.size() > Topology::kMostDevices) file.wrong(*node, "devices", wanted);
  if (const Node* nodes = root.find("nodes")) {
    const auto& items = file.list(*nodes, "nodes", "a list of NUMA nodes");
    if (items.size() != devices.size()) {
      file.wrong(*nodes, "nodes", fmt::format("{}, one for each device", devices.size()));
    }
    for (std::size_t i = 0; i < items.size(); ++i)
      devices[i].node = file.integer(items[i], "nodes", -1, kMostNumaNodes);
  }
  return devices;
}

void read_links(const TypedFile& file, const Node& root, Topology& machine) {
  const Node* links = root.find("links");
  if (links == nullptr || links->is_null()) return;
  const std::string wanted = "[device, device, NV2], or another of nvidia-smi's words: PIX, PXB, PHB, NODE, SYS";
  std::set<std::pair<int, int>> connected;
  for (const Node& item : file.list(*links, "links", "a list of " + wanted)) {
    if (item.kind != Node::Kind::kList || item.items.size() != 3) file.wrong(item, "links", wanted);
    const int a = file.integer(item.items[0], "links", 0, machine.size() - 1);
    const int b = file.integer(item.items[1], "links", 0, machine.size() - 1);
    const std::optional<Link> link = read_link(item.items[2].text);
    if (a == b || item.items[2].kind != Node::Kind::kScalar || !link) file.wrong(item.items[2], "links", wanted);
    if (!connected.insert(std::minmax(a, b)).second) file.wrong(item, "links", "each pair of devices once");
    machine.connect(a, b, *link);
  }
}

}  // namespace

Topology read_topology_keys(const TypedFile& file, const Node& root) {
  const Node* called = root.find("name");
  if (called != nullptr && called->kind != Node::Kind::kScalar) file.wrong(*called, "name", "a name");
  Topology machine(called != nullptr ? called->text : file.name(), devices_of(file, root));
  machine.nvlink = bandwidth(file, root, "nvlink", machine.nvlink);
  machine.pcie = bandwidth(file, root, "pcie", machine.pcie);
  if (machine.nvlink < machine.pcie) {
    const char* const key = root.find("nvlink") != nullptr ? "nvlink" : "pcie";
    file.wrong(*root.find(key), key, "nvlink of at least pcie's bandwidth");
  }
  read_links(file, root, machine);
  return machine;
}

Topology read_topology_yaml(std::string_view text, const std::string& name) {
  const TypedFile file(name);
  const Node root = file.root(text, "devices: ... and links: ...");
  file.check_keys(root, {"name", "devices", "nodes", "nvlink", "pcie", "links"});
  return read_topology_keys(file, root);
}

Topology read_topology(const std::filesystem::path& path) {
  const std::string text = configuration::read_text(path), name = printable(path.string());
  const std::string extension = path.extension().string();
  return extension == ".yaml" || extension == ".yml" ? read_topology_yaml(text, name) : read_smi_text(text, name);
}

}  // namespace hfta::engine
