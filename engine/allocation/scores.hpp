#pragma once
/// How well a set of accelerators communicates in a ring: the scores of every set of a machine, computed once.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/topology/topology.hpp"

namespace hfta::engine {

/// The most accelerators that one array may ask for.
inline constexpr int kMostRequested = 8;

/// The links of a ring by kind, as MAPA (SC'21) counts them: two NVLinks or more, one, none. A ring of two has its
/// link twice.
struct RingLinks {
  int doubles = 0, singles = 0, pcie = 0;
};

/// MAPA's predicted effective bandwidth, GB/s: the least-squares fit of 14 terms to measured all-reduces of its public
/// code. It is no law of nature: it is not monotone (one link more may lower it), and beyond rings of five it may be
/// negative. What is less than 1 counts as 1.
[[nodiscard]] double mapa_bandwidth(const RingLinks& links);

/// Scores of all sets of up to kMostRequested accelerators. Thread-safe. Its construction takes 2^n steps for n
/// accelerators.
class Scores {
 public:
  /// The topology is copied.
  explicit Scores(const Topology& topology);

  [[nodiscard]] const Topology& topology() const { return topology_; }
  /// The sets of that size, those with the lowest accelerators first. REQUIRES 1 <= size <= kMostRequested.
  [[nodiscard]] const std::vector<DeviceSet>& sets(int size) const { return sets_.at(static_cast<std::size_t>(size)); }

  /// MAPA's EffBW: the highest mapa_bandwidth() of the rings through a set; 0 for one accelerator.
  [[nodiscard]] double mapa(DeviceSet set) const { return mapa_[set]; }
  /// MAPA's AggBW: the highest sum of the links' bandwidths of the rings through a set; 0 for one accelerator.
  [[nodiscard]] double total(DeviceSet set) const { return total_[set]; }
  /// What NCCL can use: the bandwidth of the set's rings that share no NVLink, at most as many as there can be, times
  /// an NVLink's; or PCIe's if the NVLinks make no ring. 0 for one accelerator. A link more never lowers it.
  [[nodiscard]] double rings(DeviceSet set) const { return rings_[set]; }
  /// The sum of NVLink bandwidth within a set of any size: of the accelerators that stay free, MAPA's "preserved" one.
  [[nodiscard]] double within(DeviceSet set) const { return within_[set]; }

 private:
  void find_rings();

  Topology topology_;
  std::vector<std::vector<DeviceSet>> sets_;  ///< Sets by their size.
  std::vector<double> mapa_, total_, rings_, within_;
};

}  // namespace hfta::engine
