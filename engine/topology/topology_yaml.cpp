// A topology as YAML.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <set>
#include <utility>
#include <variant>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "engine/config/yaml.hpp"
#include "engine/topology/numa.hpp"
#include "engine/topology/readers.hpp"

namespace hfta::engine {
namespace {

using configuration::Node;

constexpr double kMostBandwidth = 1e6;

/// The typed values of one file.
class File {
 public:
  explicit File(std::string name) : name_(std::move(name)) {}

  [[noreturn]] void wrong(const Node& node, const std::string& key, const std::string& wanted) const {
    configuration::fail_at(name_, node, key,
                           fmt::format("found {}, wanted {}", configuration::found_text(node), wanted));
  }
  [[nodiscard]] int integer(const Node& node, const std::string& key, int least, int most) const {
    const auto* value = node.kind == Node::Kind::kScalar ? std::get_if<std::int64_t>(&node.value) : nullptr;
    if (value == nullptr || *value < least || *value > most) {
      wrong(node, key, fmt::format("an integer from {} to {}", least, most));
    }
    return static_cast<int>(*value);
  }
  [[nodiscard]] double bandwidth(const Node& map, const std::string& key, double fallback) const {
    const Node* node = map.find(key);
    if (node == nullptr) return fallback;
    const auto* real = std::get_if<double>(&node->value);
    const auto* whole = std::get_if<std::int64_t>(&node->value);
    const double value = real != nullptr ? *real : whole != nullptr ? static_cast<double>(*whole) : -1;
    if (node->kind != Node::Kind::kScalar || !(value > 0 && value <= kMostBandwidth)) {
      wrong(*node, key, fmt::format("GB/s, above 0 and at most {}", kMostBandwidth));
    }
    return value;
  }
  [[nodiscard]] const std::vector<Node>& list(const Node& node, const std::string& key,
                                              const std::string& wanted) const {
    if (node.kind != Node::Kind::kList) wrong(node, key, wanted);
    return node.items;
  }
  void check_keys(const Node& map, std::initializer_list<const char*> known) const {
    const std::vector<std::string> names(known.begin(), known.end());
    for (const configuration::Entry& entry : map.entries) {
      if (std::count(names.begin(), names.end(), entry.key) > 0) continue;
      configuration::fail_at(name_, entry.value, excerpt(entry.key), "unknown key" + suggestion(entry.key, names));
    }
  }

 private:
  std::string name_;
};

std::vector<Accelerator> devices_of(const File& file, const Node& root) {
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

void read_links(const File& file, const Node& root, Topology& machine) {
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

Topology read_topology_yaml(std::string_view text, const std::string& name) {
  const File file(printable(name));
  const Node root = configuration::parse_yaml(text, printable(name));
  if (root.kind != Node::Kind::kMap) file.wrong(root, "", "devices: ... and links: ...");
  file.check_keys(root, {"name", "devices", "nodes", "nvlink", "pcie", "links"});
  const Node* called = root.find("name");
  if (called != nullptr && called->kind != Node::Kind::kScalar) file.wrong(*called, "name", "a name");
  Topology machine(called != nullptr ? called->text : name, devices_of(file, root));
  machine.nvlink = file.bandwidth(root, "nvlink", machine.nvlink);
  machine.pcie = file.bandwidth(root, "pcie", machine.pcie);
  if (machine.nvlink < machine.pcie) {
    const char* const key = root.find("nvlink") != nullptr ? "nvlink" : "pcie";
    file.wrong(*root.find(key), key, "nvlink of at least pcie's bandwidth");
  }
  read_links(file, root, machine);
  return machine;
}

Topology read_topology(const std::filesystem::path& path) {
  const std::string name = printable(path.string());
  std::string text;
  try {
    const std::vector<std::byte> bytes = SystemFiles().read(path, configuration::kMostBytes);
    text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  } catch (const Error& error) {
    throw Error(ErrorKind::kConfig, fmt::format("{}: cannot be read, or is empty: {}", name, error.what()));
  }
  const std::string extension = path.extension().string();
  return extension == ".yaml" || extension == ".yml" ? read_topology_yaml(text, name) : read_smi_text(text, name);
}

}  // namespace hfta::engine
