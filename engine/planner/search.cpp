#include "engine/planner/search.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "base/random.hpp"
#include "base/shuffle.hpp"

namespace hfta::engine::planner {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

struct Scored {
  Choices choices;
  Outcome outcome;
};

class Search {
 public:
  Search(const Problem& problem, const Effort& effort)
      : problem_(problem), effort_(effort), random_(effort.seed, Stream::kSimulation, 22) {}

  Found run() && {
    std::vector<Scored> starts = first_plans();
    std::stable_sort(starts.begin(), starts.end(),
                     [](const Scored& a, const Scored& b) { return better(a.outcome, b.outcome); });
    best_ = starts.front();
    constexpr std::size_t kDescents = 3;
    for (std::size_t i = 0; i < std::min(kDescents, starts.size()); ++i) {
      if (i == 0 || 3 * found_.simulations < effort_.simulations) keep(descend(starts[i], all_groups()));
    }
    change_pairs((effort_.simulations - found_.simulations) / 3);
    while (left()) keep(descend_near(disturbed(best_)));
    found_.choices = best_.choices;
    found_.outcome = best_.outcome;
    return std::move(found_);
  }

 private:
  [[nodiscard]] bool left() const { return found_.simulations < effort_.simulations; }
  [[nodiscard]] int actions() const { return static_cast<int>(problem_.actions().size()); }
  int below(int bound) { return static_cast<int>(random_.below(static_cast<std::uint64_t>(bound))); }

  Scored score(Choices choices) {
    ++found_.simulations;
    Outcome outcome = problem_.outcome(choices);
    return {std::move(choices), std::move(outcome)};
  }
  void keep(Scored candidate) {
    if (better(candidate.outcome, best_.outcome)) best_ = std::move(candidate);
  }

  std::vector<Scored> first_plans() {
    std::vector<Scored> plans;
    for (int action = 0; action < actions(); ++action) {
      plans.push_back(score(Choices(at(problem_.groups()), action)));
      found_.baselines.push_back(
          {to_text(problem_.actions()[at(action)], problem_.cluster()), plans.back().choices, plans.back().outcome});
    }
    for (const bool by_memory : {false, true}) plans.push_back(score(stretches(by_memory)));
    return plans;
  }

  /// The graph cut into a stretch for each device, in proportion to the device's speed (or memory) and the ops' flops
  /// (or outputs and weights).
  Choices stretches(bool by_memory) {
    const Graph& graph = problem_.graph();
    const Cluster& cluster = problem_.cluster();
    std::vector<double> cost(at(problem_.groups()), 0), share;
    for (int i = 0; i < graph.size(); ++i) {
      const Op& op = graph.ops[at(i)];
      cost[at(problem_.group(i))] +=
          by_memory ? op.outputs * graph.samples + (2 + graph.states) * op.weights : op.flops;
    }
    for (const Device& device : cluster.devices) share.push_back(by_memory ? device.memory : device.tflops);
    const double all = std::max(1.0, std::accumulate(cost.begin(), cost.end(), 0.0));
    const double shares = std::accumulate(share.begin(), share.end(), 0.0);
    Choices choices;
    double sum = 0, end = share.front() / shares;
    int device = 0;
    for (const double one : cost) {
      sum += one / all;
      while (sum - one / all / 2 > end && device + 1 < cluster.size()) end += share[at(++device)] / shares;
      choices.push_back(device);
    }
    return choices;
  }

  [[nodiscard]] std::vector<int> all_groups() const {
    std::vector<int> groups(at(problem_.groups()));
    std::iota(groups.begin(), groups.end(), 0);
    return groups;
  }

  /// Changes one of the groups at a time, in a drawn order, until no change helps.
  Scored descend(Scored now, std::vector<int> groups) {
    for (bool improved = true; improved && left();) {
      improved = false;
      shuffle(groups, random_);
      for (const int group : groups) {
        for (int action = 0; action < actions() && left(); ++action) {
          if (action == now.choices[at(group)]) continue;
          Choices changed = now.choices;
          changed[at(group)] = action;
          Scored next = score(std::move(changed));
          if (!better(next.outcome, now.outcome)) continue;
          now = std::move(next);
          improved = true;
        }
      }
    }
    return now;
  }

  /// Changes two groups of the best plan at once, pairs in a drawn order, until so many plans have been tried.
  void change_pairs(int simulations) {
    const int most = std::min(effort_.simulations, found_.simulations + simulations);
    std::vector<std::pair<int, int>> pairs;
    for (int a = 0; a < problem_.groups(); ++a) {
      for (int b = a + 1; b < problem_.groups(); ++b) pairs.emplace_back(a, b);
    }
    shuffle(pairs, random_);
    for (const auto& pair : pairs) {
      const Choices from = best_.choices;
      for (int a = 0; a < actions(); ++a) {
        for (int b = 0; b < actions(); ++b) {
          if (a == from[at(pair.first)] || b == from[at(pair.second)]) continue;
          if (found_.simulations >= most) return;
          Choices changed = from;
          changed[at(pair.first)] = a;
          changed[at(pair.second)] = b;
          keep(score(std::move(changed)));
        }
      }
    }
  }

  struct Disturbed {
    Scored plan;
    std::vector<int> groups;  ///< Groups that were changed.
  };
  /// Gives a stretch of groups, or two groups anywhere, other actions.
  Disturbed disturbed(const Scored& from) {
    Disturbed other;
    const int groups = problem_.groups();
    if (below(2) == 0) {
      const int length = 1 + below(std::max(1, groups / 2)), first = below(groups);
      for (int i = first; i < std::min(groups, first + length); ++i) other.groups.push_back(i);
    } else {
      other.groups = {below(groups), below(groups)};
    }
    Choices choices = from.choices;
    const int together = below(actions());
    const bool alike = below(2) == 0;
    for (const int group : other.groups) choices[at(group)] = alike ? together : below(actions());
    other.plan = score(std::move(choices));
    return other;
  }
  /// Descends over the changed groups' neighbours, and, as often, leaves it at the change.
  Scored descend_near(Disturbed other) {
    if (better(other.plan.outcome, best_.outcome) || below(4) != 0) return std::move(other.plan);
    std::vector<int> near;
    for (const int group :
         {other.groups.front() - 1, other.groups.front(), other.groups.back(), other.groups.back() + 1}) {
      if (group >= 0 && group < problem_.groups() && std::find(near.begin(), near.end(), group) == near.end()) {
        near.push_back(group);
      }
    }
    return descend(std::move(other.plan), std::move(near));
  }

  const Problem& problem_;
  Effort effort_;
  CountedRandom random_;
  Found found_;
  Scored best_;
};

}  // namespace

Found search(const Problem& problem, const Effort& effort) { return Search(problem, effort).run(); }

}  // namespace hfta::engine::planner
