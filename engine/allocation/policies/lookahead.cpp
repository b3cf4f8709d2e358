// Our own: a tuner knows the arrays that come next and how long those at work will take. Each set that the first array
// could have is judged by playing the queue on from it, with two simple rules for the arrays behind; the set after
// which the arrays are slowed down least in all is taken (rollout: Bertsekas, Tsitsiklis and Wu, 1997). With no array
// behind, it is the set with the most bandwidth, of equals the one that leaves the most NVLink bandwidth.

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/allocation/policies/policies.hpp"

namespace hfta::engine {
namespace {

constexpr std::size_t kAhead = 16;           // arrays that are played on
constexpr std::size_t kMostCandidates = 64;  // most sets that each rule puts first

/// The rule that places an array behind the first: for bandwidth, or first of all so that others find bandwidth.
enum Rule : std::size_t { kTakes, kLeaves, kRules };

class Lookahead final : public Policy {
 public:
  explicit Lookahead(const TimeModel& model) : model_(model), scores_(model.scores()) {
    for (auto& rule : known_) rule.resize(kMostRequested + 1);
  }

  [[nodiscard]] DeviceSet choose(const Situation& situation) override {
    const std::vector<DeviceSet> candidates = candidates_of(situation);
    DeviceSet best = candidates.front();
    std::pair<double, double> best_cost{std::numeric_limits<double>::infinity(), 0};
    for (const DeviceSet set : candidates) {
      const double cost = std::min(cost_of(situation, set, kTakes), cost_of(situation, set, kLeaves));
      const std::pair key{cost, model_.slowdown(situation.queue.front(), set)};
      if (key < best_cost) best_cost = key, best = set;
    }
    return best;
  }

 private:
  [[nodiscard]] std::pair<double, double> key_of(DeviceSet free, DeviceSet set, Rule rule) const {
    const double taken = model_.bandwidth(set), left = scores_.within(free ^ set);
    return rule == kTakes ? std::pair(taken, left) : std::pair(left, taken);
  }

  // The candidates in the first rule's order; where there are many, only those that either rule puts first.
  [[nodiscard]] std::vector<DeviceSet> candidates_of(const Situation& situation) const {
    std::vector<DeviceSet> all;
    for (const DeviceSet set : scores_.sets(situation.queue.front().devices)) {
      if (contains(situation.free, set)) all.push_back(set);
    }
    const auto sort = [&](std::vector<DeviceSet>& sets, Rule rule) {
      std::stable_sort(sets.begin(), sets.end(), [&](DeviceSet a, DeviceSet b) {
        return key_of(situation.free, a, rule) > key_of(situation.free, b, rule);
      });
    };
    sort(all, kLeaves);
    if (all.size() > 2 * kMostCandidates) {
      const auto middle = all.begin() + kMostCandidates;
      std::vector<DeviceSet> others(middle, all.end());
      sort(others, kTakes);
      std::copy_n(others.begin(), kMostCandidates, middle);
      all.resize(2 * kMostCandidates);
    }
    sort(all, kTakes);
    return all;
  }

  // The cost of a play: the slowdowns of its arrays, less 1, added up.
  double cost_of(const Situation& situation, DeviceSet first, Rule rule) {
    DeviceSet free = situation.free;
    double now = 0, cost = 0;
    working_.clear();
    for (const Busy& busy : situation.busy) working_.emplace_back(busy.seconds, busy.set);
    for (std::size_t i = 0; i < std::min(situation.queue.size(), kAhead); ++i) {
      const Request& request = situation.queue[i];
      while (size_of(free) < request.devices) {
        const auto next = std::min_element(working_.begin(), working_.end());
        now = std::max(now, next->first);
        free |= next->second;
        *next = working_.back();
        working_.pop_back();
      }
      const Rule own = request.devices > 1 && request.communication > 0 ? rule : kLeaves;
      const DeviceSet set = i == 0 ? first : placed(free, request.devices, own);
      const double slowdown = model_.slowdown(request, set);
      cost += slowdown - 1;
      free ^= set;
      working_.emplace_back(now + request.seconds * slowdown, set);
    }
    return cost;
  }

  DeviceSet placed(DeviceSet free, int devices, Rule rule) {
    std::unordered_map<DeviceSet, DeviceSet>& known = known_[rule][static_cast<std::size_t>(devices)];
    const auto [place, is_new] = known.try_emplace(free, 0);
    if (is_new) {
      place->second = best_set(scores_, free, devices, [&](DeviceSet set) { return key_of(free, set, rule); });
    }
    return place->second;
  }

  const TimeModel& model_;
  const Scores& scores_;
  std::array<std::vector<std::unordered_map<DeviceSet, DeviceSet>>, kRules> known_;  ///< By rule, size, free set.
  std::vector<std::pair<double, DeviceSet>> working_;                                ///< (end, set) in one play.
};

}  // namespace

std::unique_ptr<Policy> make_lookahead(const TimeModel& model) { return std::make_unique<Lookahead>(model); }

}  // namespace hfta::engine
