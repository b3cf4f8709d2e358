#pragma once
/// Rings that share no NVLink.

#include "engine/topology/topology.hpp"

namespace hfta::engine {

inline constexpr int kMostPackingSteps = 20'000;

/// Counts rings in the sets of a topology. Thread-safe.
class DisjointRings {
 public:
  /// The topology must outlive it.
  explicit DisjointRings(const Topology& topology);
  /// The most rings through all of a set such that no NVLink is in two of them; each ring may run in both directions
  /// of its links. Of two accelerators, every link is a ring of its own. 0 if no ring consists of NVLinks alone, or if
  /// the set has fewer than two. Where accelerators have more links than any has in hardware (18), their links lead to
  /// a switch and are not a pair's own: then as many rings as the pair with the fewest links has. Otherwise a search,
  /// which is exact up to kMostPackingSteps steps; beyond them, as many as were found.
  [[nodiscard]] int most(DeviceSet set) const;

 private:
  const Topology& topology_;
  bool switched_;  ///< Links lead to a switch.
};

}  // namespace hfta::engine
