#include "engine/planner/action.hpp"

#include <algorithm>
#include <cstddef>

namespace hfta::engine::planner {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

/// `whole` divided in proportion to weights: each share is rounded so that the first i of them are as near as possible
/// to the exact sum.
std::vector<int> proportional(int whole, const std::vector<double>& weights) {
  double all = 0, sum = 0;
  for (const double weight : weights) all += weight;
  std::vector<int> shares;
  int given = 0;
  for (const double weight : weights) {
    sum += weight;
    const int end = static_cast<int>(whole * (sum / all) + 0.5);
    shares.push_back(end - given);
    given = end;
  }
  return shares;
}

Layout by_samples(const Graph& graph, const std::vector<double>& weights) {
  Layout layout;
  int first = 0;
  for (const int samples : proportional(graph.samples, weights)) {
    layout.push_back({0, graph.slots, first, samples});
    first += samples;
  }
  return layout;
}

Layout by_slots(const Graph& graph, const Cluster& cluster) {
  std::vector<double> seconds;  // time of a slot on each device
  for (int d = 0; d < cluster.size(); ++d) {
    double sum = 0;
    for (int i = 0; i < graph.size(); ++i) sum += pass_seconds(graph, i, cluster, d, graph.samples, 1, 1);
    seconds.push_back(sum);
  }
  std::vector<int> slots(seconds.size(), 0);
  for (int i = 0; i < graph.slots; ++i) {
    std::size_t best = 0;
    for (std::size_t d = 1; d < seconds.size(); ++d) {
      if ((slots[d] + 1) * seconds[d] < (slots[best] + 1) * seconds[best]) best = d;
    }
    ++slots[best];
  }
  Layout layout;
  int first = 0;
  for (const int count : slots) {
    layout.push_back({first, count, 0, graph.samples});
    first += count;
  }
  return layout;
}

int common(int first_a, int count_a, int first_b, int count_b) {
  return std::max(0, std::min(first_a + count_a, first_b + count_b) - std::max(first_a, first_b));
}

}  // namespace

std::vector<Action> actions_of(const Graph& graph, const Cluster& cluster) {
  std::vector<Action> actions;
  for (int d = 0; d < cluster.size(); ++d) actions.push_back({Sharing::kOne, d});
  for (const Sharing sharing : {Sharing::kEvPs, Sharing::kEvAr, Sharing::kCpPs, Sharing::kCpAr}) {
    actions.push_back({sharing, 0});
  }
  if (graph.slots > 1) actions.push_back({Sharing::kSlot, 0});
  return actions;
}

std::string to_text(const Action& action, const Cluster& cluster) {
  switch (action.sharing) {
    case Sharing::kEvPs:
      return "EV-PS";
    case Sharing::kEvAr:
      return "EV-AR";
    case Sharing::kCpPs:
      return "CP-PS";
    case Sharing::kCpAr:
      return "CP-AR";
    case Sharing::kSlot:
      return "SLOT";
    case Sharing::kOne:
      break;
  }
  return cluster.links.device(action.device).name;
}

Layout layout_of(const Action& action, const Graph& graph, const Cluster& cluster) {
  std::vector<double> weights(cluster.devices.size(), 1);
  switch (action.sharing) {
    case Sharing::kOne:
      std::fill(weights.begin(), weights.end(), 0);
      weights[at(action.device)] = 1;
      break;
    case Sharing::kCpPs:
    case Sharing::kCpAr:
      for (int d = 0; d < cluster.size(); ++d) weights[at(d)] = cluster.device(d).power;
      break;
    case Sharing::kSlot:
      return by_slots(graph, cluster);
    case Sharing::kEvPs:
    case Sharing::kEvAr:
      break;
  }
  return by_samples(graph, weights);
}

double overlap(const Part& a, const Part& b) {
  return static_cast<double>(common(a.first_slot, a.slots, b.first_slot, b.slots)) *
         common(a.first_sample, a.samples, b.first_sample, b.samples);
}

double pass_seconds(const Graph& graph, int op, const Cluster& cluster, int device, double slot_samples, double slots,
                    int passes) {
  const Op& one = graph.ops[at(op)];
  const Device& on = cluster.device(device);
  double numbers = one.outputs;
  for (const int input : one.inputs) numbers += graph.ops[at(input)].outputs;
  const double bytes = graph.bytes * (numbers * slot_samples + one.weights * slots);
  const double compute = one.flops * slot_samples / (on.tflops * 1e12 * cluster.efficiency);
  return cluster.launch + passes * std::max(compute, bytes / (on.bandwidth * kGb));
}

}  // namespace hfta::engine::planner
