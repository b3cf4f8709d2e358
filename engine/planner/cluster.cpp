#include "engine/planner/cluster.hpp"

#include <algorithm>
#include <utility>

namespace hfta::engine::planner {

double Cluster::rate(int a, int b) const {
  if (one_machine(a, b)) return links.bandwidth(a, b) * kGb;
  const auto port = [&](int i) { return ports.at(static_cast<std::size_t>(device(i).machine)); };
  return std::min({links.pcie, port(a), port(b)}) * kGb;
}

Cluster paper_cluster() {
  // FP32 TFLOPS, GB/s, GB: NVIDIA's data sheets of Tesla V100 PCIe 16 GB, GeForce GTX 1080 Ti, Tesla P100 PCIe 12 GB.
  const Device v100 = {14.0, 900, 16, 0, 2}, gtx = {11.3, 484, 11, 0, 1}, p100 = {9.3, 549, 12, 0, 1};
  const std::vector<std::pair<std::string, Device>> kinds = {
      {"V100", v100}, {"1080Ti", gtx}, {"1080Ti", gtx}, {"P100", p100}};
  Cluster cluster;
  std::vector<Accelerator> names;
  for (int machine = 0; machine < 4; ++machine) {
    for (int i = 0; i < 2; ++i) {
      auto [name, device] = kinds[static_cast<std::size_t>(machine)];
      device.machine = machine;
      names.push_back({name + "-" + std::to_string(cluster.size()), machine});
      cluster.devices.push_back(device);
    }
  }
  cluster.links = Topology("heterog-8", names);
  cluster.ports = {12.5, 6.25, 6.25, 6.25};
  return cluster;
}

}  // namespace hfta::engine::planner
