// Plans that the search finds, beside every plan there is.

#include "engine/planner/search.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "base/random.hpp"

using namespace hfta;
using namespace hfta::engine;
using namespace hfta::engine::planner;

namespace {

int drawn(CountedRandom& random, int least, int most) {
  return least + static_cast<int>(random.below(static_cast<std::uint64_t>(most - least + 1)));
}

// Costs of a tenth to ten times what is usual: some graphs are bound by arithmetic, others by what travels.
double spread(CountedRandom& random, double usual) { return usual * std::pow(10.0, 2 * random.uniform() - 1); }

Graph drawn_graph(std::uint64_t seed, int ops) {
  CountedRandom random(seed, Stream::kSimulation, 1);
  Graph graph;
  graph.name = "drawn";
  graph.slots = drawn(random, 1, 3);
  graph.samples = drawn(random, 1, 64);
  for (int i = 0; i < ops; ++i) {
    Op op;
    op.name = "op" + std::to_string(i);
    if (i > 0) op.inputs.push_back(drawn(random, std::max(0, i - 2), i - 1));
    if (i > 1 && random.below(3) == 0) op.inputs.push_back(drawn(random, 0, i - 2));
    op.flops = spread(random, 1e9);
    op.weights = random.below(3) == 0 ? 0 : spread(random, 1e7);
    op.outputs = spread(random, 1e5);
    graph.ops.push_back(op);
  }
  return graph;
}

Cluster drawn_cluster(std::uint64_t seed, int devices) {
  CountedRandom random(seed, Stream::kSimulation, 2);
  Cluster cluster;
  std::vector<Accelerator> names;
  for (int i = 0; i < devices; ++i) {
    names.push_back({"d" + std::to_string(i), 0});
    Device device;
    device.tflops = spread(random, 3);
    device.bandwidth = 300;
    device.memory = 1000;
    device.machine = drawn(random, 0, 1);
    device.power = drawn(random, 1, 3);
    cluster.devices.push_back(device);
  }
  cluster.links = Topology("drawn", names);
  cluster.ports = {spread(random, 3), spread(random, 3)};
  return cluster;
}

// The best of all plans.
Outcome oracle(const Problem& problem) {
  const int actions = static_cast<int>(problem.actions().size());
  Choices choices(static_cast<std::size_t>(problem.groups()), 0);
  std::optional<Outcome> best;
  for (;;) {
    const Outcome outcome = problem.outcome(choices);
    if (!best || better(outcome, *best)) best = outcome;
    std::size_t i = 0;
    while (i < choices.size() && ++choices[i] == actions) choices[i++] = 0;
    if (i == choices.size()) return *best;
  }
}

constexpr std::uint64_t kOracleCases = 24;
int ops_of_case(std::uint64_t seed) { return seed % 4 == 3 ? 5 : 2 + static_cast<int>(seed % 3); }

std::vector<int> each_alone(const Graph& graph) { return groups_of(graph, graph.size()); }

}  // namespace

TEST_CASE("a plan is no worse than any one action for all, and takes no less than its longest path") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Graph graph = drawn_graph(seed, 2 + static_cast<int>(seed % 23));
    Cluster cluster = drawn_cluster(seed, 1 + static_cast<int>(seed % 5));
    if (seed % 3 == 0) {
      for (Device& device : cluster.devices) device.memory = 0.2;
    }
    const Problem problem(graph, cluster, groups_of(graph, 8));
    const Found found = search(problem, {seed, 60});
    CAPTURE(seed);
    REQUIRE(found.baselines.size() == problem.actions().size());
    for (const Candidate& one : found.baselines) CHECK_FALSE(better(one.outcome, found.outcome));
    const TaskGraph tasks = problem.tasks(found.choices);
    const std::vector<double> ranks = ranks_of(tasks);
    CHECK(found.outcome.seconds >= *std::max_element(ranks.begin(), ranks.end()) * (1 - 1e-12));
    CHECK(found.outcome.seconds >= problem.least_seconds() * (1 - 1e-12));
  }
}

// All 7^5 plans, and graphs of fewer groups; with slots 8 actions each.
TEST_CASE("plans of up to five groups on three devices are within 2 % of the best of all", "[oracle]") {
  for (std::uint64_t seed = 0; seed < kOracleCases; ++seed) {
    const Graph graph = drawn_graph(1000 + seed, ops_of_case(seed));
    const Cluster cluster = drawn_cluster(1000 + seed, 3);
    const Problem problem(graph, cluster, each_alone(graph));
    const double best = oracle(problem).seconds;
    const double ours = search(problem, {seed, 3000}).outcome.seconds;
    CAPTURE(seed, best, ours);
    CHECK(ours <= 1.02 * best);
  }
}

TEST_CASE("a plan that fits is found wherever there is one", "[oracle]") {
  int feasible = 0, beyond_baselines = 0;
  for (std::uint64_t seed = 0; seed < kOracleCases; ++seed) {
    const Graph graph = drawn_graph(2000 + seed, ops_of_case(seed));
    Cluster cluster = drawn_cluster(2000 + seed, 3);
    CountedRandom random(seed, Stream::kSimulation, 3);
    const double needed = Problem(graph, cluster, each_alone(graph)).outcome(Choices(graph.ops.size(), 0)).peak[0];
    for (Device& device : cluster.devices) device.memory = needed / kGib * (0.2 + 0.7 * random.uniform());
    const Problem problem(graph, cluster, each_alone(graph));
    const Outcome best = oracle(problem);
    const Found found = search(problem, {seed, 3000});
    CAPTURE(seed, best.excess, found.outcome.excess);
    CHECK(found.outcome.feasible() == best.feasible());
    feasible += best.feasible() ? 1 : 0;
    const auto fits = [](const Candidate& one) { return one.outcome.feasible(); };
    if (best.feasible() && std::none_of(found.baselines.begin(), found.baselines.end(), fits)) ++beyond_baselines;
    if (best.feasible()) CHECK(found.outcome.seconds <= 1.02 * best.seconds);
  }
  CHECK(feasible > 0);
  CHECK(feasible < static_cast<int>(kOracleCases));
  CHECK(beyond_baselines > 0);
}
