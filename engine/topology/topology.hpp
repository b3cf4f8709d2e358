#pragma once
/// How the accelerators of a machine are connected: plain data.

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hfta::engine {

/// The path between two accelerators, in the words of `nvidia-smi topo -m`; from the nearest to the farthest.
enum class PathKind {
  kNvlink,  ///< NV<n>: n NVLinks.
  kPix,     ///< One PCIe switch.
  kPxb,     ///< Several PCIe switches.
  kPhb,     ///< The PCIe host bridge of a CPU.
  kNode,    ///< Between the host bridges of one NUMA node.
  kSys      ///< Between NUMA nodes.
};

struct Link {
  PathKind kind = PathKind::kSys;
  int lanes = 0;  ///< NVLinks; 0 for any other kind.
  bool operator==(const Link&) const = default;
};

/// "NV2", "PHB".
[[nodiscard]] std::string to_text(const Link& link);
/// A link from such a word, or from SOC, an older one for SYS; nullopt if it is none, or more than kMostLanes.
[[nodiscard]] std::optional<Link> read_link(std::string_view word);

/// A name as a Topology keeps it: printable ASCII, at most 80 characters. Other bytes become question marks.
[[nodiscard]] std::string plain_name(std::string_view text);

struct Accelerator {
  std::string name;  ///< "GPU0", or what the source has.
  int node = -1;     ///< NUMA node; -1: unknown.
};

/// A set of a machine's accelerators: bit i stands for the i-th.
using DeviceSet = std::uint32_t;

[[nodiscard]] inline int size_of(DeviceSet set) { return std::popcount(set); }
[[nodiscard]] inline bool has(DeviceSet set, int device) { return (set >> device & 1U) != 0; }
[[nodiscard]] inline bool contains(DeviceSet all, DeviceSet some) { return (all & some) == some; }
/// The `count` lowest of a set. REQUIRES count <= size_of(set).
[[nodiscard]] DeviceSet lowest(DeviceSet set, int count);
/// "0 1 5".
[[nodiscard]] std::string to_text(DeviceSet set);

/// A machine. A value type; links are symmetric.
class Topology {
 public:
  static constexpr int kMostDevices = 16;
  static constexpr int kMostLanes = 64;

  Topology() = default;
  /// Every pair is connected by PHB within a NUMA node, and by SYS between nodes. Names are made plain. REQUIRES at
  /// most kMostDevices.
  Topology(std::string_view name, std::vector<Accelerator> devices);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] int size() const { return static_cast<int>(devices_.size()); }
  [[nodiscard]] DeviceSet all() const { return static_cast<DeviceSet>((1U << devices_.size()) - 1); }
  [[nodiscard]] const Accelerator& device(int i) const { return devices_.at(static_cast<std::size_t>(i)); }
  [[nodiscard]] const Link& link(int a, int b) const {
    return links_.at(static_cast<std::size_t>(a)).at(static_cast<std::size_t>(b));
  }
  /// Sets the link of both directions. REQUIRES a != b, both below size().
  void connect(int a, int b, const Link& link);
  /// GB/s in one direction.
  [[nodiscard]] double bandwidth(int a, int b) const { return link(a, b).lanes > 0 ? link(a, b).lanes * nvlink : pcie; }

  double nvlink = 25;  ///< GB/s of one NVLink, in one direction: the second generation's.
  double pcie = 10;    ///< GB/s of a path without NVLink. MAPA (SC'21) takes 10.

 private:
  std::string name_;
  std::vector<Accelerator> devices_;
  std::array<std::array<Link, kMostDevices>, kMostDevices> links_;
};

/// The matrix of links as a table, one line per accelerator, with NUMA nodes.
[[nodiscard]] std::string to_table(const Topology& topology);
/// The machine as a file that read_topology() reads.
[[nodiscard]] std::string to_yaml(const Topology& topology);

}  // namespace hfta::engine
