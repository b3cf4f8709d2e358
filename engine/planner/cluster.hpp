#pragma once
/// Machines with accelerators, and what connects them: what the planner computes times from.

#include <string>
#include <vector>

#include "engine/topology/topology.hpp"

namespace hfta::engine::planner {

struct Device {
  double tflops = 1;     ///< Peak speed in the arithmetic that the model is trained in.
  double bandwidth = 1;  ///< GB/s of its memory.
  double memory = 1;     ///< GiB.
  int machine = 0;       ///< Index of its machine, from 0.
  double power = 1;      ///< Its share of a batch under CP is power / the sum of all.
};

/// A value type. Within a machine two devices are connected as `links` says, between machines by the machines' ports,
/// one each, of which both directions work at once.
struct Cluster {
  Topology links;  ///< Names and paths of all devices; bandwidth() counts within a machine, and `pcie` up to a port.
  std::vector<Device> devices;
  std::vector<double> ports = {1};  ///< GB/s of each machine's port, in one direction.
  double efficiency = 0.5;          ///< The part of `tflops` that ops reach.
  double launch = 10e-6;            ///< Seconds that every op takes at least.
  double latency = 12e-6;           ///< Seconds of a transfer, and of each hop of a collective, beside its bytes' time.

  [[nodiscard]] int size() const { return static_cast<int>(devices.size()); }
  [[nodiscard]] const Device& device(int i) const { return devices.at(static_cast<std::size_t>(i)); }
  [[nodiscard]] bool one_machine(int a, int b) const { return device(a).machine == device(b).machine; }
  /// Bytes per second from one device to another. REQUIRES a != b.
  [[nodiscard]] double rate(int a, int b) const;
};

inline constexpr double kGb = 1e9;
inline constexpr double kGib = 1024.0 * 1024 * 1024;

/// HeteroG's eight GPUs (CoNEXT'20, section 6.1 and table 1): two V100 in one machine with a port of 100 Gbit/s, four
/// GTX 1080 Ti in two, and two P100 in one, with 50 Gbit/s each. Speeds and memory are the makers' figures; CP's
/// shares are the paper's replicas, two on a V100 and one on any other.
[[nodiscard]] Cluster paper_cluster();

}  // namespace hfta::engine::planner
