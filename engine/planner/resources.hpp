#pragma once
/// The resources that tasks hold on a cluster, and the time that transfers take. Internal to engine/planner.

#include <vector>

#include "engine/planner/cluster.hpp"
#include "engine/planner/tasks.hpp"

namespace hfta::engine::planner {

/// The resources of a cluster by number; a name for each.
[[nodiscard]] Resources device_resource(int device);
/// The resources of a transfer: out of one device, into another, and between machines through both ports.
[[nodiscard]] Resources path_of(const Cluster& cluster, int from, int to);
[[nodiscard]] double transfer_seconds(const Cluster& cluster, int from, int to, double bytes);

/// An all-reduce among devices: what it holds and how long it takes.
struct Collective {
  Resources holds;  ///< The channel, of which a cluster has one (NCCL runs one collective at a time), and its paths.
  double seconds = 0;
};
/// The faster of two: a ring over all members, 2 (k - 1) hops of 1/k of the bytes each over the slowest path; or rings
/// within machines, then one of the machines' first members, then back. `members` ascend; REQUIRES at least two.
[[nodiscard]] Collective all_reduce(const Cluster& cluster, const std::vector<int>& members, double bytes);

}  // namespace hfta::engine::planner
