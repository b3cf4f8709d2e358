#include "engine/allocation/ring_packing.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

namespace hfta::engine {
namespace {

constexpr int kLinksOfDevice = 18;

bool is_switched(const Topology& topology) {
  for (int a = 0; a < topology.size(); ++a) {
    int lanes = 0;
    for (int b = 0; b < topology.size(); ++b) lanes += a == b ? 0 : topology.link(a, b).lanes;
    if (lanes > kLinksOfDevice) return true;
  }
  return false;
}

int fewest_lanes(const Topology& topology, DeviceSet set) {
  int lanes = Topology::kMostLanes;
  for (int a = 0; a < topology.size(); ++a) {
    for (int b = 0; b < a; ++b) {
      if (has(set, a) && has(set, b)) lanes = std::min(lanes, topology.link(a, b).lanes);
    }
  }
  return lanes;
}

/// Depth-first search: one ring after the other is laid, accelerator by accelerator, over the NVLinks that are left.
class Packing {
 public:
  Packing(const Topology& topology, DeviceSet set) {
    for (int i = 0; i < topology.size(); ++i) {
      if (has(set, i)) devices_.push_back(i);
    }
    size_ = devices_.size();
    bound_ = Topology::kMostLanes;
    for (std::size_t a = 0; a < size_; ++a) {
      int lanes = 0;
      for (std::size_t b = 0; b < size_; ++b) {
        left_[a][b] = a == b ? 0 : topology.link(devices_[a], devices_[b]).lanes;
        lanes += left_[a][b];
      }
      bound_ = std::min(bound_, lanes / 2);  // a ring takes two links of each accelerator
    }
  }

  int most() {
    lay_ring(0);
    return most_;
  }

 private:
  // `laid` rings lie already. Their order and direction do not matter: each begins at the first accelerator.
  void lay_ring(int laid) {
    most_ = std::max(most_, laid);
    if (laid + bound_left() > most_) go_on(0, 1U, laid);
  }

  void go_on(std::size_t here, unsigned visited, int laid) {
    if (visited == (1U << size_) - 1) {
      if (left_[here][0] == 0) return;
      take(here, 0, -1);
      lay_ring(laid + 1);
      take(here, 0, 1);
      return;
    }
    if (--steps_ < 0) return;
    for (std::size_t next = 1; next < size_ && most_ < bound_; ++next) {
      if ((visited >> next & 1U) != 0 || left_[here][next] == 0) continue;
      take(here, next, -1);
      go_on(next, visited | 1U << next, laid);
      take(here, next, 1);
    }
  }

  void take(std::size_t a, std::size_t b, int lanes) {
    left_[a][b] += lanes;
    left_[b][a] += lanes;
  }

  [[nodiscard]] int bound_left() const {
    int bound = bound_;
    for (std::size_t a = 0; a < size_; ++a) {
      int lanes = 0;
      for (std::size_t b = 0; b < size_; ++b) lanes += left_[a][b];
      bound = std::min(bound, lanes / 2);
    }
    return bound;
  }

  std::vector<int> devices_;
  std::size_t size_ = 0;
  std::array<std::array<int, Topology::kMostDevices>, Topology::kMostDevices> left_{};
  int bound_ = 0, most_ = 0, steps_ = kMostPackingSteps;
};

}  // namespace

DisjointRings::DisjointRings(const Topology& topology) : topology_(topology), switched_(is_switched(topology)) {}

int DisjointRings::most(DeviceSet set) const {
  const int size = size_of(set);
  if (size < 2) return 0;
  if (size == 2 || switched_) return fewest_lanes(topology_, set);
  return Packing(topology_, set).most();
}

}  // namespace hfta::engine
