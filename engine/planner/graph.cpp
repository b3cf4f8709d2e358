#include "engine/planner/graph.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <queue>

namespace hfta::engine::planner {
namespace {

std::vector<std::vector<int>> neighbours_of(const Graph& graph) {
  std::vector<std::vector<int>> neighbours(graph.ops.size());
  for (int i = 0; i < graph.size(); ++i) {
    for (const int input : graph.ops[static_cast<std::size_t>(i)].inputs) {
      neighbours[static_cast<std::size_t>(i)].push_back(input);
      neighbours[static_cast<std::size_t>(input)].push_back(i);
    }
  }
  return neighbours;
}

/// The `most` ops with the highest cost, in ascending order.
std::vector<int> centres_of(const Graph& graph, int most) {
  double flops = 0, weights = 0;
  for (const Op& op : graph.ops) flops += op.flops, weights += op.weights;
  const auto cost = [&](int i) {
    const Op& op = graph.ops[static_cast<std::size_t>(i)];
    return (flops > 0 ? op.flops / flops : 0) + (weights > 0 ? op.weights / weights : 0);
  };
  std::vector<int> order(graph.ops.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return cost(a) > cost(b); });
  order.resize(std::min(order.size(), static_cast<std::size_t>(most)));
  std::sort(order.begin(), order.end());
  return order;
}

}  // namespace

std::vector<int> groups_of(const Graph& graph, int most) {
  const std::vector<std::vector<int>> neighbours = neighbours_of(graph);
  std::vector<int> group(graph.ops.size(), -1);
  std::queue<int> reached;
  int count = 0;
  for (const int centre : centres_of(graph, most)) {
    group[static_cast<std::size_t>(centre)] = count++;
    reached.push(centre);
  }
  for (; !reached.empty(); reached.pop()) {
    for (const int next : neighbours[static_cast<std::size_t>(reached.front())]) {
      int& found = group[static_cast<std::size_t>(next)];
      if (found >= 0) continue;
      found = group[static_cast<std::size_t>(reached.front())];
      reached.push(next);
    }
  }
  // An op that is connected to no centre costs little; it joins the group of the op before it.
  for (std::size_t i = 0; i < group.size(); ++i) {
    if (group[i] < 0) group[i] = i > 0 ? group[i - 1] : 0;
  }
  return group;
}

}  // namespace hfta::engine::planner
