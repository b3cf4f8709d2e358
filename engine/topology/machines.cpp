#include "engine/topology/machines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.hpp"
#include "base/random.hpp"
#include "base/text.hpp"

namespace hfta::engine {
namespace {

using Edges = std::vector<std::array<int, 3>>;  // (GPU, GPU, NVLinks)

// Edges of eight V100, from `nvidia-smi topo -m`. P100s have four NVLinks instead of six: one along each of these.
const Edges kCubeMesh = {{0, 1, 1}, {0, 2, 1}, {0, 3, 2}, {0, 4, 2}, {1, 2, 2}, {1, 3, 1}, {1, 5, 2}, {2, 3, 2},
                         {2, 6, 1}, {3, 7, 1}, {4, 5, 1}, {4, 6, 1}, {4, 7, 2}, {5, 6, 2}, {5, 7, 1}, {6, 7, 2}};

std::vector<Accelerator> gpus(int count, int per_node) {
  std::vector<Accelerator> devices;
  devices.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) devices.push_back({fmt::format("GPU{}", i), i / per_node});
  return devices;
}

void connect(Topology& machine, int a, int b, int lanes) { machine.connect(a, b, {PathKind::kNvlink, lanes}); }

Topology dgx_1v() {
  Topology machine("dgx-1v", gpus(8, 4));
  for (const auto& [a, b, lanes] : kCubeMesh) connect(machine, a, b, lanes);
  return machine;
}

Topology dgx_1p() {
  Topology machine("dgx-1p", gpus(8, 4));
  for (const auto& [a, b, lanes] : kCubeMesh) connect(machine, a, b, 1);
  machine.nvlink = 20;
  return machine;
}

Topology summit() {
  Topology machine("summit", gpus(6, 3));
  for (const int first : {0, 3}) {
    for (const auto& [a, b] : {std::pair{0, 1}, {0, 2}, {1, 2}}) connect(machine, first + a, first + b, 2);
  }
  return machine;
}

Topology torus_16() {
  Topology machine("torus-16", gpus(16, 8));
  for (int row = 0; row < 4; ++row) {
    for (int column = 0; column < 4; ++column) {
      connect(machine, 4 * row + column, 4 * row + (column + 1) % 4, 2);
      connect(machine, 4 * row + column, 4 * ((row + 1) % 4) + column, 1);
    }
  }
  return machine;
}

Topology cube_mesh_16() {
  Topology machine("cube-mesh-16", gpus(16, 4));
  for (int i = 0; i < 8; ++i) connect(machine, i, i + 8, 1);
  for (const int first : {0, 8}) {
    for (const auto& [a, b, lanes] : kCubeMesh) connect(machine, first + a, first + b, lanes);
  }
  return machine;
}

}  // namespace

const std::vector<Topology>& built_in_machines() {
  static const std::vector<Topology> all = {dgx_1v(), dgx_1p(), summit(), torus_16(), cube_mesh_16()};
  return all;
}

const Topology& built_in_machine(const std::string& name, const std::string& option) {
  std::vector<std::string> names;
  for (const Topology& machine : built_in_machines()) {
    if (machine.name() == name) return machine;
    names.push_back(machine.name());
  }
  throw Error(ErrorKind::kConfig, fmt::format("{}: found '{}', wanted one of {}{}", option, printable(name),
                                              join(names), suggestion(name, names)));
}

Topology drawn_machine(std::uint64_t seed, int devices) {
  constexpr int kLinksOfGpu = 6;
  Topology machine(fmt::format("drawn-{}", seed), gpus(devices, (devices + 1) / 2));
  std::vector<int> free(static_cast<std::size_t>(devices), kLinksOfGpu);
  CountedRandom random(seed, Stream::kSimulation, 20, static_cast<std::uint64_t>(devices));
  const auto some = [&] { return static_cast<int>(random.below(static_cast<std::uint64_t>(devices))); };
  for (int tries = 0; tries < 4 * devices; ++tries) {
    const int a = some(), b = some();
    if (a == b || machine.link(a, b).lanes > 0) continue;
    int& left_a = free[static_cast<std::size_t>(a)];
    int& left_b = free[static_cast<std::size_t>(b)];
    const int lanes = std::min({1 + static_cast<int>(random.below(2)), left_a, left_b});
    if (lanes == 0) continue;
    connect(machine, a, b, lanes);
    left_a -= lanes;
    left_b -= lanes;
  }
  return machine;
}

}  // namespace hfta::engine
