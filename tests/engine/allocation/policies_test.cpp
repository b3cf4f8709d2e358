// What policies choose, beside all sets tried one by one.

#include <algorithm>
#include <catch2/catch.hpp>
#include <ctime>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <span>
#include <tuple>

#include "base/random.hpp"
#include "engine/allocation/jobs.hpp"
#include "engine/allocation/policy.hpp"
#include "engine/topology/machines.hpp"
#include "oracle.hpp"

using namespace hfta;
using namespace hfta::engine;
using namespace hfta::engine::testing;

namespace {

std::unique_ptr<Policy> policy(const std::string& name, const TimeModel& model) {
  const auto found =
      std::find_if(policies().begin(), policies().end(), [&](const PolicyKind& kind) { return kind.name == name; });
  REQUIRE(found != policies().end());
  return found->make(model);
}

DeviceSet chosen(Policy& policy, DeviceSet free, const Request& request) {
  const std::vector<Request> queue = {request};
  return policy.choose({free, {}, queue});
}

/// The first of the sets, in the order of the smallest numbers, with the largest key.
template <typename Key>
DeviceSet first_best(const std::vector<DeviceSet>& sets, const Key& key) {
  DeviceSet best = sets.front();
  for (const DeviceSet set : sets) {
    if (key(set) > key(best)) best = set;
  }
  return best;
}

DeviceSet oracle_topology_aware(const Topology& machine, DeviceSet free, int size) {
  std::map<int, DeviceSet> nodes;
  for (int i = 0; i < machine.size(); ++i) nodes[machine.device(i).node] |= DeviceSet{1} << i;
  for (const auto& [node, all] : nodes) {
    if (size < 4 && size_of(free & all) >= size) return sets_in(free & all, size, machine.size()).front();
  }
  return sets_in(free, size, machine.size()).front();
}

int pair_score(const Topology& machine, DeviceSet set) {
  int sum = 0;
  for (int a = 0; a < machine.size(); ++a) {
    for (int b = 0; b < a; ++b) {
      const Link& link = machine.link(a, b);
      if (has(set, a) && has(set, b)) {
        sum += link.lanes > 0 ? 100 * link.lanes : link.kind == PathKind::kPhb ? 30 : 10;
      }
    }
  }
  return sum;
}

/// The highest sum over the disjoint sets of any division of `free`, and the best single set of such a division.
std::pair<int, int> oracle_division(const std::vector<DeviceSet>& sets, const std::vector<int>& scores, DeviceSet free,
                                    int size, std::size_t first = 0) {
  std::pair<int, int> best{0, 0};
  if (size_of(free) < size) return best;
  for (std::size_t i = first; i < sets.size(); ++i) {
    if (!contains(free, sets[i])) continue;
    const auto [rest, single] = oracle_division(sets, scores, free ^ sets[i], size, i + 1);
    best = std::max(best, {rest + scores[i], std::max(single, scores[i])});
  }
  return best;
}

/// Busy devices to look at: all of a machine of eight, some of a larger one.
std::vector<DeviceSet> busy_sets(const Topology& machine) {
  std::vector<DeviceSet> busy;
  CountedRandom random(2, Stream::kSimulation, 10);
  for (DeviceSet set = 0; set < 256; ++set) {
    busy.push_back(machine.size() <= 8 ? set & machine.all() : random.next_u32() & machine.all());
  }
  return busy;
}

template <typename Check>
void each_situation(const Topology& machine, const Check& check) {
  for (const DeviceSet busy : busy_sets(machine)) {
    const DeviceSet free = machine.all() & ~busy;
    for (int size = 1; size <= std::min(size_of(free), kMostRequested); ++size) check(free, size);
  }
}

}  // namespace

TEST_CASE("policies choose the set that trying all of them finds, whatever is busy") {
  for (const Topology& machine : built_in_machines()) {
    const Scores scores(machine);
    const TimeModel model(scores, Bandwidth::kRings);
    const auto baseline = policy("baseline", model), aware = policy("topo-aware", model),
               greedy = policy("greedy", model), preserve = policy("preserve", model),
               ours = policy("lookahead", model);
    each_situation(machine, [&](DeviceSet free, int size) {
      CAPTURE(machine.name(), free, size);
      const std::vector<DeviceSet> sets = sets_in(free, size, machine.size());
      REQUIRE(scores.sets(size) == sets_in(machine.all(), size, machine.size()));
      const Request plain{size, 0.05, false, 1}, sensitive{size, 0.1, true, 1};
      REQUIRE(chosen(*baseline, free, plain) == sets.front());
      REQUIRE(chosen(*aware, free, plain) == oracle_topology_aware(machine, free, size));
      REQUIRE(chosen(*greedy, free, plain) == first_best(sets, [&](DeviceSet set) { return scores.total(set); }));
      const auto preserved = [&](DeviceSet set) { return std::pair(scores.within(free ^ set), scores.total(set)); };
      REQUIRE(chosen(*preserve, free, plain) == first_best(sets, preserved));
      const auto mapa = [&](DeviceSet set) { return size == 1 ? preserved(set) : std::pair(scores.mapa(set), 0.0); };
      REQUIRE(chosen(*preserve, free, sensitive) == first_best(sets, mapa));
      const auto rings = [&](DeviceSet set) { return std::pair(scores.rings(set), scores.within(free ^ set)); };
      REQUIRE(chosen(*ours, free, sensitive) == first_best(sets, rings));
    });
  }
}

TEST_CASE("NVIDIA's choice is the best set of a division that scores most in all") {
  for (const Topology& machine : built_in_machines()) {
    if (machine.size() > 8) continue;  // millions of divisions
    const Scores scores(machine);
    const TimeModel model(scores, Bandwidth::kMapa);
    const auto best_effort = policy("best-effort", model);
    each_situation(machine, [&](DeviceSet free, int size) {
      CAPTURE(machine.name(), free, size);
      const DeviceSet set = chosen(*best_effort, free, {size, 0.1, true, 1});
      REQUIRE(contains(free, set));
      REQUIRE(size_of(set) == size);
      if (size == 1) return;
      const std::vector<DeviceSet> sets = sets_in(free, size, machine.size());
      std::vector<int> pairs;
      for (const DeviceSet some : sets) pairs.push_back(pair_score(machine, some));
      const auto [total, single] = oracle_division(sets, pairs, free, size);
      // Of the divisions with that total any may be taken: the set completes one, and is no better than the best of
      // any.
      REQUIRE(pair_score(machine, set) + oracle_division(sets, pairs, free ^ set, size).first == total);
      REQUIRE(pair_score(machine, set) <= single);
    });
  }
}

TEST_CASE("without a queue behind, a link more never makes the chosen set worse, nor does another numbering") {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const Topology machine = seed == 0 ? built_in_machines()[0] : drawn_machine(seed, 8);
    const Scores scores(machine);
    const TimeModel model(scores, Bandwidth::kRings);
    const auto ours = policy("lookahead", model);
    std::vector<int> order(8);
    std::iota(order.begin(), order.end(), 0);
    CountedRandom random(seed, Stream::kSimulation, 11);
    for (std::size_t i = 7; i > 0; --i) std::swap(order[i], order[random.below(i + 1)]);
    Topology upgraded = machine;
    const auto a = static_cast<int>(random.below(8)), b = static_cast<int>((a + 1 + random.below(7)) % 8);
    upgraded.connect(a, b, {PathKind::kNvlink, machine.link(a, b).lanes + 1});
    const Scores better(upgraded), renamed(relabelled(machine, order));
    const TimeModel better_model(better, Bandwidth::kRings), renamed_model(renamed, Bandwidth::kRings);
    const auto of_better = policy("lookahead", better_model), of_renamed = policy("lookahead", renamed_model);
    each_situation(machine, [&](DeviceSet free, int size) {
      const Request request{size, 0.1, true, 1};
      CAPTURE(seed, a, b, free, size);
      const DeviceSet set = chosen(*ours, free, request), other_free = relabelled(free, order);
      REQUIRE(better.rings(chosen(*of_better, free, request)) >= scores.rings(set));
      const DeviceSet other = chosen(*of_renamed, other_free, request);
      REQUIRE(renamed.rings(other) == scores.rings(set));
      REQUIRE(renamed.within(other_free ^ other) == scores.within(free ^ set));
    });
  }
}

// Hidden, as it depends on the machine: allocation_test "[time]".
TEST_CASE("a choice takes 1 ms at most among 8 accelerators, 50 ms among 16", "[.time]") {
  const auto processor_seconds = [] { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; };
  for (const Topology& machine : built_in_machines()) {
    double began = processor_seconds();
    const Scores scores(machine);
    const double scoring = processor_seconds() - began;
    const TimeModel model(scores, Bandwidth::kMapa);
    double longest = 0;
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      const auto ours = policy("lookahead", model);
      std::vector<Request> queue;
      for (const Job& job : paper_mix(seed, 300, machine.size(), {})) queue.push_back(job.request);
      for (std::size_t i = 0; i < queue.size(); ++i) {
        began = processor_seconds();
        (void)ours->choose({machine.all(), {}, std::span(queue).subspan(i)});
        longest = std::max(longest, processor_seconds() - began);
      }
    }
    WARN(machine.name() << ": scores " << 1e3 * scoring << " ms, longest choice " << 1e3 * longest << " ms");
    CHECK(longest <= (machine.size() <= 8 ? 1e-3 : 50e-3));
  }
}

TEST_CASE("an array leaves the good links to the one behind it that needs them") {
  // Of four accelerators 0 and 1 share four NVLinks, the others none.
  Topology machine("two and two", std::vector<Accelerator>(4));
  machine.connect(0, 1, {PathKind::kNvlink, 4});
  const Scores scores(machine);
  const TimeModel model(scores, Bandwidth::kRings);
  const auto ours = policy("lookahead", model), greedy = policy("greedy", model);
  const std::vector<Request> queue = {{2, 0.05, false, 10}, {2, 0.5, true, 10}};
  CHECK(ours->choose({machine.all(), {}, queue}) == 0b1100);
  CHECK(greedy->choose({machine.all(), {}, queue}) == 0b0011);
  // The pair is about to be free again: then it is worth nothing to leave it.
  const std::vector<Request> one_after_the_other = {{2, 0.05, false, 1}, {4, 0, false, 1}, {2, 0.5, true, 10}};
  CHECK(ours->choose({machine.all(), {}, one_after_the_other}) == 0b0011);
}
