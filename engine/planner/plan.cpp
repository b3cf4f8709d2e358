#include "engine/planner/plan.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

namespace hfta::engine::planner {

bool better(const Outcome& a, const Outcome& b) {
  return std::tie(a.excess, a.seconds) < std::tie(b.excess, b.seconds);
}

Problem::Problem(const Graph& graph, const Cluster& cluster, std::vector<int> groups)
    : graph_(graph), cluster_(cluster), groups_(std::move(groups)), actions_(actions_of(graph, cluster)) {
  for (const int group : groups_) count_ = std::max(count_, group + 1);
  for (const Action& action : actions_) layouts_.push_back(layout_of(action, graph, cluster));
  for (const Layout& from : layouts_) {
    for (const Part& a : from) {
      for (const Layout& to : layouts_) {
        for (const Part& b : to) moved_.push_back(overlap(a, b));
      }
    }
  }
}

double Problem::moved(int action, int a, int other, int b) const {
  const std::size_t devices = cluster_.devices.size(), from = static_cast<std::size_t>(action) * devices;
  const std::size_t row = (from + static_cast<std::size_t>(a)) * layouts_.size() + static_cast<std::size_t>(other);
  return moved_[row * devices + static_cast<std::size_t>(b)];
}

Outcome Problem::outcome(const Choices& choices) const {
  Timeline timeline = simulate(tasks(choices));
  Outcome outcome;
  outcome.seconds = timeline.seconds;
  for (int d = 0; d < cluster_.size(); ++d) {
    const double memory = cluster_.device(d).memory * kGib;
    outcome.excess += std::max(0.0, timeline.peak[static_cast<std::size_t>(d)] - memory);
  }
  outcome.peak = std::move(timeline.peak);
  return outcome;
}

double Problem::least_seconds() const {
  const double all = static_cast<double>(graph_.slots) * graph_.samples;
  const auto seconds = [&](int op, int device) {
    const int passes = 1 + passes_back(graph_.ops[static_cast<std::size_t>(op)]);
    return pass_seconds(graph_, op, cluster_, device, all, 0, passes) - cluster_.launch;
  };
  std::vector<double> speed;
  for (int d = 0; d < cluster_.size(); ++d) {
    double sum = 0;
    for (int op = 0; op < graph_.size(); ++op) sum += seconds(op, d);
    speed.push_back(sum > 0 ? 1 / sum : 0);
  }
  const double whole = std::accumulate(speed.begin(), speed.end(), 0.0);
  double least = 0;
  for (int op = 0; op < graph_.size() && whole > 0; ++op) {
    double one = std::numeric_limits<double>::infinity();
    for (int d = 0; d < cluster_.size(); ++d) {
      one = std::min(one, speed[static_cast<std::size_t>(d)] / whole * seconds(op, d));
    }
    least += one;
  }
  return least;
}

}  // namespace hfta::engine::planner
