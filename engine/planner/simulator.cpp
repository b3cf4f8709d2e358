#include "engine/planner/simulator.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <queue>
#include <unordered_map>
#include <utility>

namespace hfta::engine::planner {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

/// The memory that each device holds.
class Memory {
 public:
  explicit Memory(const TaskGraph& graph) : graph_(graph), now_(graph.resident), references_(graph.buffers.size(), 0) {
    for (const Task& task : graph.tasks) {
      for (const int buffer : task.makes) ++references_[at(buffer)];
      for (const int buffer : task.reads) ++references_[at(buffer)];
    }
    peak = now_;
  }
  void begin(const Task& task) {
    for (const int made : task.makes) {
      const Buffer& buffer = graph_.buffers[at(made)];
      now_[at(buffer.device)] += buffer.bytes;
      peak[at(buffer.device)] = std::max(peak[at(buffer.device)], now_[at(buffer.device)]);
    }
  }
  void end(const Task& task) {
    for (const int buffer : task.makes) release(buffer);
    for (const int buffer : task.reads) release(buffer);
  }

  std::vector<double> peak;

 private:
  void release(int which) {
    const Buffer& buffer = graph_.buffers[at(which)];
    if (--references_[at(which)] == 0) now_[at(buffer.device)] -= buffer.bytes;
  }

  const TaskGraph& graph_;
  std::vector<double> now_;
  std::vector<int> references_;
};

/// Ready tasks, those that hold the same resources in one queue: of a queue only the first can begin.
class Ready {
 public:
  explicit Ready(const TaskGraph& graph, const std::vector<double>& ranks) : ranks_(ranks) {
    std::unordered_map<Resources, int> numbers;
    queue_of_.reserve(graph.tasks.size());
    for (const Task& task : graph.tasks) {
      const auto [found, added] = numbers.emplace(task.holds, static_cast<int>(queues_.size()));
      if (added) queues_.push_back({task.holds, {}});
      queue_of_.push_back(found->second);
    }
  }
  void add(int task) { queues_[at(queue_of_[at(task)])].tasks.emplace(ranks_[at(task)], -task); }
  /// Takes out what begins now, given what is held, and adds to that.
  std::vector<int> begin(Resources& held) {
    order_.clear();
    for (std::size_t q = 0; q < queues_.size(); ++q) {
      if (!queues_[q].tasks.empty() && (queues_[q].holds & held).none()) {
        order_.emplace_back(queues_[q].tasks.top(), q);
      }
    }
    std::sort(order_.begin(), order_.end(), std::greater<>());
    std::vector<int> begun;
    for (const auto& [head, q] : order_) {
      Queue& queue = queues_[q];
      if ((queue.holds & held).any()) continue;
      held |= queue.holds;
      begun.push_back(-head.second);
      queue.tasks.pop();
    }
    return begun;
  }

 private:
  struct Queue {
    Resources holds;
    std::priority_queue<std::pair<double, int>> tasks;  // rank, then minus the number
  };

  const std::vector<double>& ranks_;
  std::vector<int> queue_of_;
  std::vector<Queue> queues_;
  std::vector<std::pair<std::pair<double, int>, std::size_t>> order_;
};

/// The tasks that wait for each task.
std::vector<std::vector<int>> successors_of(const TaskGraph& graph) {
  std::vector<std::vector<int>> next(graph.tasks.size());
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    for (const int before : graph.tasks[i].after) next[at(before)].push_back(static_cast<int>(i));
  }
  return next;
}

}  // namespace

std::vector<double> ranks_of(const TaskGraph& graph) {
  std::vector<double> ranks(graph.tasks.size(), 0);
  for (std::size_t i = graph.tasks.size(); i-- > 0;) {
    ranks[i] += graph.tasks[i].seconds;  // until here it held the highest rank behind it
    for (const int before : graph.tasks[i].after) ranks[at(before)] = std::max(ranks[at(before)], ranks[i]);
  }
  return ranks;
}

Timeline simulate(const TaskGraph& graph) {
  const std::vector<double> ranks = ranks_of(graph);
  const std::vector<std::vector<int>> next = successors_of(graph);
  Timeline timeline;
  timeline.spans.resize(graph.tasks.size());
  Memory memory(graph);
  Ready ready(graph, ranks);
  std::vector<int> waits(graph.tasks.size());
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    waits[i] = static_cast<int>(graph.tasks[i].after.size());
    if (waits[i] == 0) ready.add(static_cast<int>(i));
  }
  using End = std::pair<double, int>;
  std::priority_queue<End, std::vector<End>, std::greater<>> running;
  Resources held;
  for (double now = 0;;) {
    for (const int task : ready.begin(held)) {
      const double end = now + graph.tasks[at(task)].seconds;
      timeline.spans[at(task)] = {now, end};
      memory.begin(graph.tasks[at(task)]);
      running.emplace(end, task);
    }
    if (running.empty()) break;
    now = running.top().first;
    for (; !running.empty() && running.top().first == now; running.pop()) {
      const int task = running.top().second;
      held &= ~graph.tasks[at(task)].holds;
      memory.end(graph.tasks[at(task)]);
      for (const int waiting : next[at(task)]) {
        if (--waits[at(waiting)] == 0) ready.add(waiting);
      }
    }
    timeline.seconds = now;
  }
  timeline.peak = std::move(memory.peak);
  return timeline;
}

}  // namespace hfta::engine::planner
