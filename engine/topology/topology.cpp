#include "engine/topology/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/number_text.hpp"
#include "base/text.hpp"

namespace hfta::engine {
namespace {

constexpr std::pair<const char*, PathKind> kPaths[] = {{"PIX", PathKind::kPix}, {"PXB", PathKind::kPxb},
                                                       {"PHB", PathKind::kPhb}, {"NODE", PathKind::kNode},
                                                       {"SYS", PathKind::kSys}, {"SOC", PathKind::kSys}};

// A text in quotes, as YAML has it.
std::string quoted(const std::string& text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? "''" : std::string(1, c);
  return word + "'";
}

}  // namespace

std::string to_text(const Link& link) {
  if (link.kind == PathKind::kNvlink) return fmt::format("NV{}", link.lanes);
  const auto* const found =
      std::find_if(std::begin(kPaths), std::end(kPaths), [&](const auto& path) { return path.second == link.kind; });
  return found->first;
}

std::optional<Link> read_link(std::string_view word) {
  for (const auto& [name, kind] : kPaths) {
    if (word == name) return Link{kind, 0};
  }
  if (!word.starts_with("NV")) return std::nullopt;
  const int lanes = parse_number<int>(word.substr(2)).value_or(0);
  if (lanes < 1 || lanes > Topology::kMostLanes) return std::nullopt;
  return Link{PathKind::kNvlink, lanes};
}

std::string plain_name(std::string_view text) {
  constexpr std::size_t kLongest = 80;
  std::string name(text.substr(0, kLongest));
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return name;
}

DeviceSet lowest(DeviceSet set, int count) {
  DeviceSet those = 0;
  for (; count > 0; --count) {
    those |= set & (~set + 1);
    set &= set - 1;
  }
  return those;
}

std::string to_text(DeviceSet set) {
  std::vector<std::string> words;
  for (int i = 0; i < Topology::kMostDevices; ++i) {
    if (has(set, i)) words.push_back(std::to_string(i));
  }
  return join(words, " ");
}

Topology::Topology(std::string_view name, std::vector<Accelerator> devices)
    : name_(plain_name(name)), devices_(std::move(devices)) {
  for (Accelerator& device : devices_) device.name = plain_name(device.name);
  for (int a = 0; a < size(); ++a) {
    for (int b = 0; b < a; ++b) {
      connect(a, b, {device(a).node == device(b).node ? PathKind::kPhb : PathKind::kSys, 0});
    }
  }
}

void Topology::connect(int a, int b, const Link& link) {
  const auto i = static_cast<std::size_t>(a), j = static_cast<std::size_t>(b);
  links_.at(i).at(j) = links_.at(j).at(i) = link;
}

std::string to_table(const Topology& topology) {
  std::string text = fmt::format("{:8}", "");
  for (int i = 0; i < topology.size(); ++i) text += fmt::format("{:>6}", i);
  text += "  node\n";
  for (int a = 0; a < topology.size(); ++a) {
    text += fmt::format("{:<2} {:<5}", a, topology.device(a).name);
    for (int b = 0; b < topology.size(); ++b) text += fmt::format("{:>6}", a == b ? "X" : to_text(topology.link(a, b)));
    const int node = topology.device(a).node;
    text += fmt::format("  {:>4}\n", node < 0 ? "-" : std::to_string(node));
  }
  return text;
}

std::string to_yaml(const Topology& topology) {
  std::vector<std::string> names, nodes;
  for (int i = 0; i < topology.size(); ++i) {
    names.push_back(quoted(topology.device(i).name));
    nodes.push_back(std::to_string(topology.device(i).node));
  }
  std::string text =
      fmt::format("name: {}\ndevices: [{}]\nnodes: [{}]\nnvlink: {}\npcie: {}\nlinks:\n", quoted(topology.name()),
                  join(names), join(nodes), shortest(topology.nvlink), shortest(topology.pcie));
  for (int a = 0; a < topology.size(); ++a) {
    for (int b = a + 1; b < topology.size(); ++b) {
      text += fmt::format("  - [{}, {}, {}]\n", a, b, to_text(topology.link(a, b)));
    }
  }
  return text;
}

}  // namespace hfta::engine
