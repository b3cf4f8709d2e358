#include "engine/planner/resources.hpp"

#include <algorithm>
#include <cstddef>
#include <map>

namespace hfta::engine::planner {
namespace {

// The resources' numbers: devices, directions of their links, directions of ports, the channel of collectives.
constexpr std::size_t kDevices = Topology::kMostDevices;
constexpr std::size_t kOut = kDevices, kIn = 2 * kDevices, kPortOut = 3 * kDevices, kPortIn = 4 * kDevices;
constexpr std::size_t kChannel = 5 * kDevices;
static_assert(kChannel < kMostResources);

Resources one(std::size_t base, int number) { return Resources().set(base + static_cast<std::size_t>(number)); }

/// A ring over the members in their order.
Collective ring(const Cluster& cluster, const std::vector<int>& members, double bytes) {
  Collective found;
  const auto k = static_cast<double>(members.size());
  if (members.size() < 2) return found;
  double slowest = cluster.rate(members.back(), members.front());
  for (std::size_t i = 0; i < members.size(); ++i) {
    const int from = members[i], to = members[(i + 1) % members.size()];
    slowest = std::min(slowest, cluster.rate(from, to));
    found.holds |= path_of(cluster, from, to);
  }
  found.seconds = 2 * (k - 1) * (cluster.latency + bytes / k / slowest);
  return found;
}

/// Rings within machines, a ring of the machines, and its result from each machine's first member to the others.
Collective by_machine(const Cluster& cluster, const std::vector<int>& members, double bytes) {
  std::map<int, std::vector<int>> machines;
  for (const int member : members) machines[cluster.device(member).machine].push_back(member);
  Collective found;
  std::vector<int> first;
  double within = 0, back = 0;
  for (const auto& [machine, own] : machines) {
    const Collective local = ring(cluster, own, bytes);
    first.push_back(own.front());
    found.holds |= local.holds;
    within = std::max(within, local.seconds);
    for (std::size_t i = 1; i < own.size(); ++i) {
      back = std::max(back, transfer_seconds(cluster, own[i - 1], own[i], bytes));
    }
  }
  const Collective across = ring(cluster, first, bytes);
  found.holds |= across.holds;
  found.seconds = within + across.seconds + (first.size() > 1 ? back : 0);
  return found;
}

}  // namespace

Resources device_resource(int device) { return one(0, device); }

Resources path_of(const Cluster& cluster, int from, int to) {
  Resources path = one(kOut, from) | one(kIn, to);
  if (!cluster.one_machine(from, to)) {
    path |= one(kPortOut, cluster.device(from).machine) | one(kPortIn, cluster.device(to).machine);
  }
  return path;
}

double transfer_seconds(const Cluster& cluster, int from, int to, double bytes) {
  return cluster.latency + bytes / cluster.rate(from, to);
}

Collective all_reduce(const Cluster& cluster, const std::vector<int>& members, double bytes) {
  const Collective flat = ring(cluster, members, bytes), layered = by_machine(cluster, members, bytes);
  Collective best = layered.seconds < flat.seconds ? layered : flat;
  best.holds.set(kChannel);
  return best;
}

}  // namespace hfta::engine::planner
