#pragma once
/// The makers of policies, for the table; each has its file.

#include <memory>

#include "engine/allocation/policy.hpp"

namespace hfta::engine {

[[nodiscard]] std::unique_ptr<Policy> make_baseline(const TimeModel& model);
[[nodiscard]] std::unique_ptr<Policy> make_topology_aware(const TimeModel& model);
[[nodiscard]] std::unique_ptr<Policy> make_greedy(const TimeModel& model);
[[nodiscard]] std::unique_ptr<Policy> make_preserve(const TimeModel& model);
[[nodiscard]] std::unique_ptr<Policy> make_best_effort(const TimeModel& model);
[[nodiscard]] std::unique_ptr<Policy> make_lookahead(const TimeModel& model);

/// The set of `size` among the free ones for which `key` is largest; of equals, the one with the lowest accelerators.
template <typename Key>
[[nodiscard]] DeviceSet best_set(const Scores& scores, DeviceSet free, int size, const Key& key) {
  DeviceSet best = 0;
  for (const DeviceSet set : scores.sets(size)) {
    if (contains(free, set) && (best == 0 || key(set) > key(best))) best = set;
  }
  return best;
}

}  // namespace hfta::engine
