// The policy that NVIDIA's device plugin for Kubernetes prefers (go-gpuallocator, "best effort"): all free accelerators
// are divided into sets of the wanted size such that the pairs within sets score most in all; of that division, the
// best set is taken. A pair scores 100 for each NVLink, or by its path over PCIe. One accelerator is the lowest free
// one.

#include <cstddef>
#include <unordered_map>
#include <vector>

#include "engine/allocation/policies/policies.hpp"

namespace hfta::engine {
namespace {

int score_of(const Link& link) {
  switch (link.kind) {
    case PathKind::kNvlink:
      return 100 * link.lanes;
    case PathKind::kPix:
      return 50;
    case PathKind::kPxb:
      return 40;
    case PathKind::kPhb:
      return 30;
    case PathKind::kNode:
      return 20;
    case PathKind::kSys:
      break;
  }
  return 10;
}

class BestEffort final : public Policy {
 public:
  explicit BestEffort(const Scores& scores) : scores_(scores), divisions_(kMostRequested + 1) {
    const Topology& topology = scores.topology();
    pairs_.resize(std::size_t{1} << topology.size());
    for (DeviceSet set = 1; set < pairs_.size(); ++set) {
      const int first = std::countr_zero(set);
      pairs_[set] = pairs_[set & (set - 1)];
      for (int other = first + 1; other < topology.size(); ++other) {
        if (has(set, other)) pairs_[set] += score_of(topology.link(first, other));
      }
    }
  }

  // The division is walked set by set: each holds the lowest accelerator that is in any.
  [[nodiscard]] DeviceSet choose(const Situation& situation) override {
    const int devices = situation.queue.front().devices;
    if (devices == 1) return lowest(situation.free, 1);
    DeviceSet best = 0, left = situation.free;
    while (size_of(left) >= devices) {
      const DeviceSet set = division(left, devices).first;
      if (set != 0 && (best == 0 || pairs_[set] > pairs_[best])) best = set;
      left ^= set != 0 ? set : lowest(left, 1);
    }
    return best;
  }

 private:
  struct Division {
    DeviceSet first = 0;  ///< The set of the lowest accelerator; 0: it is in none.
    int score = 0;        ///< The scores of all its sets, added up.
  };

  const Division& division(DeviceSet free, int devices) {
    std::unordered_map<DeviceSet, Division>& known = divisions_[static_cast<std::size_t>(devices)];
    const auto found = known.find(free);
    if (found != known.end()) return found->second;
    Division best;
    if (size_of(free) >= devices) {
      const DeviceSet low = lowest(free, 1);
      if (size_of(free) % devices != 0) best.score = division(free ^ low, devices).score;
      for (const DeviceSet set : scores_.sets(devices)) {
        if ((set & low) == 0 || !contains(free, set)) continue;
        const int score = pairs_[set] + division(free ^ set, devices).score;
        if (score > best.score) best = {set, score};
      }
    }
    return known.emplace(free, best).first->second;
  }

  const Scores& scores_;
  std::vector<int> pairs_;                                          ///< The sum over a set's pairs.
  std::vector<std::unordered_map<DeviceSet, Division>> divisions_;  ///< Divisions by size, then by free accelerators.
};

}  // namespace

std::unique_ptr<Policy> make_best_effort(const TimeModel& model) {
  return std::make_unique<BestEffort>(model.scores());
}

}  // namespace hfta::engine
