#include "engine/planner/plan_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace hfta::engine::planner {
namespace {

using nlohmann::ordered_json;

std::size_t at(int i) { return static_cast<std::size_t>(i); }

bool is_compute(TaskKind kind) {
  return kind == TaskKind::kForward || kind == TaskKind::kBackward || kind == TaskKind::kUpdate;
}

const std::string& device_name(const Problem& problem, int device) {
  return problem.cluster().links.device(device).name;
}

std::string task_name(const Problem& problem, const Task& task) {
  return fmt::format("{} {}", to_text(task.kind), problem.graph().ops[at(task.op)].name);
}

/// The tasks in order of their begin, then of their number.
std::vector<int> by_begin(const Timeline& timeline) {
  std::vector<int> order(timeline.spans.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return timeline.spans[at(a)].begin < timeline.spans[at(b)].begin; });
  return order;
}

std::vector<double> busy_seconds(const Problem& problem, const TaskGraph& graph) {
  std::vector<double> busy(problem.cluster().devices.size(), 0);
  for (const Task& task : graph.tasks) {
    if (is_compute(task.kind)) busy[at(task.device)] += task.seconds;
  }
  return busy;
}

std::string step_text(const Outcome& outcome) {
  const std::string seconds = fmt::format("{:10.4f} s", outcome.seconds);
  return outcome.feasible() ? seconds : fmt::format("{}  lacks {:.1f} GiB", seconds, outcome.excess / kGib);
}

/// The fastest of the baselines that fit; nullptr if none does.
const Candidate* best_baseline(const Found& found) {
  const Candidate* best = nullptr;
  for (const Candidate& one : found.baselines) {
    if (one.outcome.feasible() && (best == nullptr || one.outcome.seconds < best->outcome.seconds)) best = &one;
  }
  return best;
}

ordered_json outcome_json(const Outcome& outcome) {
  return {{"step_s", outcome.seconds}, {"feasible", outcome.feasible()}, {"lacking_bytes", outcome.excess}};
}

ordered_json devices_json(const Problem& problem, const Outcome& outcome, const std::vector<double>& busy) {
  ordered_json devices = ordered_json::array();
  for (int d = 0; d < problem.cluster().size(); ++d) {
    devices.push_back({{"name", device_name(problem, d)},
                       {"machine", problem.cluster().device(d).machine},
                       {"busy_s", busy[at(d)]},
                       {"peak_bytes", outcome.peak[at(d)]},
                       {"memory_bytes", problem.cluster().device(d).memory * kGib}});
  }
  return devices;
}

ordered_json ops_json(const Problem& problem, const Choices& choices, const TaskGraph& graph) {
  std::map<int, int> servers;  // by op
  for (const Task& task : graph.tasks) {
    if (task.kind == TaskKind::kPush) servers[task.op] = task.device;
  }
  ordered_json ops = ordered_json::array();
  for (int i = 0; i < problem.graph().size(); ++i) {
    const int action = choices[at(problem.group(i))];
    ordered_json op = {{"name", problem.graph().ops[at(i)].name},
                       {"group", problem.group(i)},
                       {"action", to_text(problem.actions()[at(action)], problem.cluster())}};
    if (const auto server = servers.find(i); server != servers.end())
      op["server"] = device_name(problem, server->second);
    ordered_json parts = ordered_json::object();
    for (int d = 0; d < problem.cluster().size(); ++d) {
      const Part& part = problem.layout(action)[at(d)];
      if (!part.empty()) parts[device_name(problem, d)] = {{"slots", part.slots}, {"samples", part.samples}};
    }
    op["parts"] = std::move(parts);
    ops.push_back(std::move(op));
  }
  return ops;
}

ordered_json order_json(const Problem& problem, const TaskGraph& graph, const Timeline& timeline) {
  std::vector<ordered_json> orders(problem.cluster().devices.size(), ordered_json::array());
  for (const int i : by_begin(timeline)) {
    const Task& task = graph.tasks[at(i)];
    if (is_compute(task.kind)) orders[at(task.device)].push_back(task_name(problem, task));
  }
  ordered_json order = ordered_json::object();
  for (int d = 0; d < problem.cluster().size(); ++d) order[device_name(problem, d)] = std::move(orders[at(d)]);
  return order;
}

/// The rows of a trace: devices, then whatever travels, in the order of the first task.
class Rows {
 public:
  explicit Rows(const Problem& problem) : problem_(problem) {
    for (int d = 0; d < problem.cluster().size(); ++d) row(device_name(problem, d));
  }
  int of(const Task& task) {
    if (is_compute(task.kind)) return task.device;
    if (task.kind == TaskKind::kAllReduce) return row("collectives");
    return row(fmt::format("{} to {}", device_name(problem_, task.from), device_name(problem_, task.device)));
  }
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

 private:
  int row(const std::string& name) {
    const auto [found, added] = numbers_.emplace(name, static_cast<int>(names_.size()));
    if (added) names_.push_back(name);
    return found->second;
  }
  const Problem& problem_;
  std::map<std::string, int> numbers_;
  std::vector<std::string> names_;
};

}  // namespace

std::string plan_table(const Problem& problem, const Found& found) {
  const Graph& graph = problem.graph();
  std::string text = fmt::format("{}: {} ops in {} groups, {} slot{} x {} samples; on {}. All times are simulated.\n\n",
                                 graph.name, graph.size(), problem.groups(), graph.slots, graph.slots == 1 ? "" : "s",
                                 graph.samples, problem.cluster().links.name());
  for (const Candidate& one : found.baselines) text += fmt::format("{:<16}{}\n", one.name, step_text(one.outcome));
  text += fmt::format("{:<16}{}", "planned", step_text(found.outcome));
  const Candidate* best = best_baseline(found);
  if (best != nullptr && found.outcome.feasible()) {
    text += fmt::format("  {:.2f} x {}", best->outcome.seconds / found.outcome.seconds, best->name);
  }
  const std::vector<double> busy = busy_seconds(problem, problem.tasks(found.choices));
  text += fmt::format("\n\n{:<16}{:>8}{:>12}{:>12}\n", "device", "busy", "holds GiB", "has GiB");
  for (int d = 0; d < problem.cluster().size(); ++d) {
    text += fmt::format("{:<16}{:>6.0f} %{:>12.2f}{:>12.2f}\n", device_name(problem, d),
                        found.outcome.seconds > 0 ? 100 * busy[at(d)] / found.outcome.seconds : 0,
                        found.outcome.peak[at(d)] / kGib, problem.cluster().device(d).memory);
  }
  text += "\nops by action:";
  std::vector<int> counts(problem.actions().size(), 0);
  for (int i = 0; i < graph.size(); ++i) ++counts[at(found.choices[at(problem.group(i))])];
  for (std::size_t a = 0; a < counts.size(); ++a) {
    if (counts[a] > 0) text += fmt::format("  {} {}", to_text(problem.actions()[a], problem.cluster()), counts[a]);
  }
  return text + "\n";
}

std::string plan_json(const Problem& problem, const Found& found, const Effort& effort) {
  const TaskGraph graph = problem.tasks(found.choices);
  const Timeline timeline = simulate(graph);
  ordered_json baselines = ordered_json::array();
  for (const Candidate& one : found.baselines) {
    ordered_json baseline = {{"action", one.name}};
    baseline.update(outcome_json(one.outcome));
    baselines.push_back(std::move(baseline));
  }
  ordered_json plan = {{"version", 1},
                       {"simulated", true},
                       {"graph", problem.graph().name},
                       {"cluster", problem.cluster().links.name()},
                       {"slots", problem.graph().slots},
                       {"samples", problem.graph().samples},
                       {"seed", effort.seed},
                       {"simulations", found.simulations}};
  plan.update(outcome_json(found.outcome));
  plan["baselines"] = std::move(baselines);
  plan["devices"] = devices_json(problem, found.outcome, busy_seconds(problem, graph));
  plan["ops"] = ops_json(problem, found.choices, graph);
  plan["order"] = order_json(problem, graph, timeline);
  return plan.dump(1) + "\n";
}

std::string plan_trace(const Problem& problem, const Choices& choices) {
  const TaskGraph graph = problem.tasks(choices);
  const Timeline timeline = simulate(graph);
  constexpr double kMicro = 1e6;
  Rows rows(problem);
  ordered_json events = ordered_json::array();
  for (const int i : by_begin(timeline)) {
    const Task& task = graph.tasks[at(i)];
    const Span& span = timeline.spans[at(i)];
    events.push_back({{"name", task_name(problem, task)},
                      {"cat", to_text(task.kind)},
                      {"ph", "X"},
                      {"pid", 0},
                      {"tid", rows.of(task)},
                      {"ts", span.begin * kMicro},
                      {"dur", (span.end - span.begin) * kMicro}});
  }
  for (std::size_t row = 0; row < rows.names().size(); ++row) {
    events.push_back(
        {{"name", "thread_name"}, {"ph", "M"}, {"pid", 0}, {"tid", row}, {"args", {{"name", rows.names()[row]}}}});
    events.push_back(
        {{"name", "thread_sort_index"}, {"ph", "M"}, {"pid", 0}, {"tid", row}, {"args", {{"sort_index", row}}}});
  }
  return ordered_json({{"traceEvents", std::move(events)}, {"otherData", {{"simulated", true}}}}).dump() + "\n";
}

}  // namespace hfta::engine::planner
