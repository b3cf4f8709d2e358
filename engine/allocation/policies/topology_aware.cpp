// MAPA's "topo-aware" (SC'21, after Amaral et al., SC'17): up to three accelerators on one NUMA node, if one has as
// many free; else as the baseline.

#include <map>

#include "engine/allocation/policies/policies.hpp"

namespace hfta::engine {
namespace {

constexpr int kMostOnNode = 3;

class TopologyAware final : public Policy {
 public:
  explicit TopologyAware(const Topology& topology) {
    for (int i = 0; i < topology.size(); ++i) nodes_[topology.device(i).node] |= DeviceSet{1} << i;
  }

  [[nodiscard]] DeviceSet choose(const Situation& situation) override {
    const int devices = situation.queue.front().devices;
    for (const auto& [node, members] : nodes_) {
      const DeviceSet free = situation.free & members;
      if (devices <= kMostOnNode && size_of(free) >= devices) return lowest(free, devices);
    }
    return lowest(situation.free, devices);
  }

 private:
  std::map<int, DeviceSet> nodes_;
};

}  // namespace

std::unique_ptr<Policy> make_topology_aware(const TimeModel& model) {
  return std::make_unique<TopologyAware>(model.scores().topology());
}

}  // namespace hfta::engine
