#pragma once
/// A plan: one action for each group of ops; and the tasks that it comes to.

#include <vector>

#include "engine/planner/action.hpp"
#include "engine/planner/simulator.hpp"
#include "engine/planner/tasks.hpp"

namespace hfta::engine::planner {

/// The number of each group's action in actions_of().
using Choices = std::vector<int>;

/// The time and memory of a plan, in simulated time.
struct Outcome {
  double seconds = 0;        ///< Seconds of a step.
  double excess = 0;         ///< Bytes beyond the devices' memory, summed over devices; 0: the plan is feasible.
  std::vector<double> peak;  ///< Peak memory by device, in bytes.
  [[nodiscard]] bool feasible() const { return excess == 0; }
};
/// Feasible plans are better than others, then those that lack less memory, then those that are faster.
[[nodiscard]] bool better(const Outcome& a, const Outcome& b);

/// A graph on a cluster, its ops in groups, and what is computed of them once. Both must outlive it. Its functions are
/// const and may be called by several threads.
class Problem {
 public:
  /// `groups` as groups_of() returns them. REQUIRES a valid graph and at most Topology::kMostDevices devices.
  Problem(const Graph& graph, const Cluster& cluster, std::vector<int> groups);

  [[nodiscard]] const Graph& graph() const { return graph_; }
  [[nodiscard]] const Cluster& cluster() const { return cluster_; }
  [[nodiscard]] const std::vector<Action>& actions() const { return actions_; }
  [[nodiscard]] int groups() const { return count_; }
  [[nodiscard]] int group(int op) const { return groups_[static_cast<std::size_t>(op)]; }
  [[nodiscard]] const Layout& layout(int action) const { return layouts_[static_cast<std::size_t>(action)]; }
  /// Slots x samples of one layout's part on `a` that another layout has on `b`.
  [[nodiscard]] double moved(int action, int a, int other, int b) const;

  /// The step as tasks: forward and backward of each op on each device that has a part of it, what travels between ops
  /// of different layouts, the exchange of gradients, and the update of weights. A parameter server of an op is the
  /// device, among those with a part of the op, that then has the least to send and receive, ops of more weights first.
  [[nodiscard]] TaskGraph tasks(const Choices& choices) const;
  [[nodiscard]] Outcome outcome(const Choices& choices) const;
  /// Seconds that no plan of any kind can undercut, were nothing to travel and every op divided at will: with weights
  /// w of the devices that sum to 1, the sum over ops of min over d of w_d t_d(op) is a bound by duality; here w_d is
  /// the device's speed in the whole graph.
  [[nodiscard]] double least_seconds() const;

 private:
  const Graph& graph_;
  const Cluster& cluster_;
  std::vector<int> groups_;
  int count_ = 0;
  std::vector<Action> actions_;
  std::vector<Layout> layouts_;
  std::vector<double> moved_;
};

}  // namespace hfta::engine::planner
