#include "oracle.hpp"

#include <algorithm>
#include <map>

namespace hfta::engine::testing {
namespace {

std::vector<int> members(DeviceSet set) {
  std::vector<int> all;
  for (int i = 0; i < Topology::kMostDevices; ++i) {
    if (has(set, i)) all.push_back(i);
  }
  return all;
}

template <typename Visit>
void each_link(const std::vector<int>& ring, const Visit& visit) {
  for (std::size_t i = 0; i < ring.size(); ++i) visit(ring[i], ring[(i + 1) % ring.size()]);
}

using Lanes = std::map<std::pair<int, int>, int>;

// The most of the rings from `first` on, each as often as lanes allow.
int packed(const std::vector<std::vector<int>>& rings, std::size_t first, Lanes& left) {
  int most = 0;
  for (std::size_t i = first; i < rings.size(); ++i) {
    bool fits = true;
    each_link(rings[i], [&](int a, int b) { fits = --left[std::minmax(a, b)] >= 0 && fits; });
    if (fits) most = std::max(most, 1 + packed(rings, i, left));
    each_link(rings[i], [&](int a, int b) { ++left[std::minmax(a, b)]; });
  }
  return most;
}

}  // namespace

std::vector<std::vector<int>> rings_of(DeviceSet set) {
  std::vector<int> order = members(set);
  std::vector<std::vector<int>> rings;
  do {
    if (order.size() < 3 || order[1] < order.back()) rings.push_back(order);
  } while (std::next_permutation(order.begin() + 1, order.end()));
  return rings;
}

double oracle_mapa(const Topology& topology, DeviceSet set) {
  double best = 0;
  for (const std::vector<int>& ring : rings_of(set)) {
    RingLinks links;
    each_link(ring, [&](int a, int b) {
      const int lanes = topology.link(a, b).lanes;
      ++(lanes >= 2 ? links.doubles : lanes == 1 ? links.singles : links.pcie);
    });
    best = std::max(best, mapa_bandwidth(links));
  }
  return best;
}

double oracle_total(const Topology& topology, DeviceSet set) {
  double best = 0;
  for (const std::vector<int>& ring : rings_of(set)) {
    double total = 0;
    each_link(ring, [&](int a, int b) { total += topology.bandwidth(a, b); });
    best = std::max(best, total);
  }
  return best;
}

double oracle_within(const Topology& topology, DeviceSet set) {
  double sum = 0;
  for (const int a : members(set)) {
    for (const int b : members(set)) sum += a < b ? topology.nvlink * topology.link(a, b).lanes : 0;
  }
  return sum;
}

double oracle_rings(const Topology& topology, DeviceSet set) {
  const std::vector<int> all = members(set);
  if (all.size() == 2) return topology.bandwidth(all[0], all[1]);
  Lanes left;
  for (const int a : all) {
    for (const int b : all) {
      if (a < b) left[{a, b}] = topology.link(a, b).lanes;
    }
  }
  std::vector<std::vector<int>> rings;
  for (const std::vector<int>& ring : rings_of(set)) {
    bool nvlinks = true;
    each_link(ring, [&](int a, int b) { nvlinks = nvlinks && topology.link(a, b).lanes > 0; });
    if (nvlinks) rings.push_back(ring);
  }
  const int most = packed(rings, 0, left);
  return most > 0 ? most * topology.nvlink : topology.pcie;
}

std::vector<DeviceSet> sets_in(DeviceSet free, int size, int devices) {
  std::vector<DeviceSet> sets;
  std::vector<bool> chosen(static_cast<std::size_t>(devices));
  std::fill_n(chosen.begin(), size, true);
  do {
    DeviceSet set = 0;
    for (int i = 0; i < devices; ++i) set |= chosen[static_cast<std::size_t>(i)] ? DeviceSet{1} << i : 0;
    if (contains(free, set)) sets.push_back(set);
  } while (std::prev_permutation(chosen.begin(), chosen.end()));
  return sets;
}

Topology relabelled(const Topology& topology, const std::vector<int>& order) {
  std::vector<Accelerator> devices(order.size());
  for (int i = 0; i < topology.size(); ++i) {
    devices[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] = topology.device(i);
  }
  Topology other(topology.name(), devices);
  for (int a = 0; a < topology.size(); ++a) {
    for (int b = 0; b < a; ++b) {
      other.connect(order[static_cast<std::size_t>(a)], order[static_cast<std::size_t>(b)], topology.link(a, b));
    }
  }
  other.nvlink = topology.nvlink;
  other.pcie = topology.pcie;
  return other;
}

DeviceSet relabelled(DeviceSet set, const std::vector<int>& order) {
  DeviceSet other = 0;
  for (const int i : members(set)) other |= DeviceSet{1} << order[static_cast<std::size_t>(i)];
  return other;
}

}  // namespace hfta::engine::testing
