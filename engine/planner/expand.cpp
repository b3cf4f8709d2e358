// Expands a plan into tasks. The tasks' numbers ascend in the order of dependence.

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <utility>

#include "engine/planner/plan.hpp"
#include "engine/planner/resources.hpp"

namespace hfta::engine::planner {

const char* to_text(TaskKind kind) {
  switch (kind) {
    case TaskKind::kForward:
      return "forward";
    case TaskKind::kBackward:
      return "backward";
    case TaskKind::kTransfer:
      return "transfer";
    case TaskKind::kPush:
      return "push";
    case TaskKind::kPull:
      return "pull";
    case TaskKind::kAllReduce:
      return "all-reduce";
    case TaskKind::kUpdate:
      break;
  }
  return "update";
}

namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

/// A buffer, and the task after which it is whole.
struct Piece {
  int task = -1, buffer = -1;
};

/// A piece of an op's output that was sent to a device, for its part of a layout: it is sent once.
struct Sent {
  int from = 0, to = 0, action = 0;
  Piece piece;
};

/// A gradient of an op's output, made by a reader whose layout is that of an action.
struct Gradient {
  int action = 0;
  Piece piece;
};

class Expansion {
 public:
  Expansion(const Problem& problem, const Choices& choices)
      : problem_(problem),
        graph_(problem.graph()),
        cluster_(problem.cluster()),
        choices_(choices),
        forward_(cells()),
        backward_(cells()),
        inputs_(cells()),
        sent_(graph_.ops.size()) {
    out_.resident.assign(cluster_.devices.size(), 0);
  }

  TaskGraph run() && {
    choose_servers();
    for (int op = 0; op < graph_.size(); ++op) add_forward(op);
    gradients_.resize(cells());
    for (int op = graph_.size(); op-- > 0;) {
      add_backward(op);
      if (graph_.ops[at(op)].weights > 0) add_exchange(op);
    }
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::size_t cells() const { return graph_.ops.size() * cluster_.devices.size(); }
  [[nodiscard]] std::size_t cell(int op, int device) const { return at(op) * cluster_.devices.size() + at(device); }
  [[nodiscard]] int action(int op) const { return choices_[at(problem_.group(op))]; }
  [[nodiscard]] const Part& part(int op, int device) const { return problem_.layout(action(op))[at(device)]; }
  [[nodiscard]] double area(int op, int device) const {
    return static_cast<double>(part(op, device).slots) * part(op, device).samples;
  }
  [[nodiscard]] double weight_bytes(int op, int device) const {
    return graph_.ops[at(op)].weights * graph_.bytes * part(op, device).slots;
  }
  [[nodiscard]] bool has_backward(int op) const { return passes_back(graph_.ops[at(op)]) > 0; }
  [[nodiscard]] std::vector<int> members(int op) const {
    std::vector<int> found;
    for (int d = 0; d < cluster_.size(); ++d) {
      if (!part(op, d).empty()) found.push_back(d);
    }
    return found;
  }
  [[nodiscard]] bool exchanges(int op) const {
    return problem_.actions()[at(action(op))].sharing != Sharing::kSlot && members(op).size() > 1;
  }
  [[nodiscard]] bool by_server(int op) const {
    const Sharing sharing = problem_.actions()[at(action(op))].sharing;
    return exchanges(op) && (sharing == Sharing::kEvPs || sharing == Sharing::kCpPs);
  }

  int add(Task task) {
    out_.tasks.push_back(std::move(task));
    return static_cast<int>(out_.tasks.size()) - 1;
  }
  int allocate(int device, double bytes) {
    out_.buffers.push_back({device, bytes});
    return static_cast<int>(out_.buffers.size()) - 1;
  }
  Task compute(TaskKind kind, int op, int device, double seconds) const {
    return {kind, op, device, -1, seconds, device_resource(device), {}, {}, {}};
  }
  Task travel(TaskKind kind, int op, int from, int to, double bytes) const {
    return {kind, op, to, from, transfer_seconds(cluster_, from, to, bytes), path_of(cluster_, from, to), {}, {}, {}};
  }

  /// Chooses servers, ops of most weights first: each is the member whose links then have the least to carry.
  void choose_servers() {
    server_.assign(graph_.ops.size(), -1);
    std::vector<int> order(graph_.ops.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return graph_.ops[at(a)].weights > graph_.ops[at(b)].weights; });
    std::vector<double> load(cluster_.devices.size(), 0);
    for (const int op : order) {
      if (!by_server(op)) continue;
      std::pair<double, int> best = {0, -1};
      for (const int d : members(op)) {
        double seconds = 0;
        for (const int other : members(op)) {
          if (other != d) seconds += transfer_seconds(cluster_, other, d, weight_bytes(op, d));
        }
        if (best.second < 0 || load[at(d)] + seconds < best.first) best = {load[at(d)] + seconds, d};
      }
      server_[at(op)] = best.second;
      load[at(best.second)] = best.first;
    }
  }

  /// Brings a piece of what `op` made on `from` to `to`, for a part of the layout of `wanted`.
  Piece bring(int op, const Piece& made, int from, int to, int wanted, double slot_samples) {
    if (from == to) return made;
    for (const Sent& sent : sent_[at(op)]) {
      if (sent.from == from && sent.to == to && sent.action == wanted) return sent.piece;
    }
    const Piece piece = send(op, {made}, from, to, slot_samples);
    sent_[at(op)].push_back({from, to, wanted, piece});
    return piece;
  }
  Piece send(int op, const std::vector<Piece>& made, int from, int to, double slot_samples) {
    const double bytes = graph_.ops[at(op)].outputs * graph_.bytes * slot_samples;
    Task task = travel(TaskKind::kTransfer, op, from, to, bytes);
    const int buffer = allocate(to, bytes);
    for (const Piece& piece : made) {
      task.after.push_back(piece.task);
      task.reads.push_back(piece.buffer);
    }
    task.makes = {buffer};
    return {add(std::move(task)), buffer};
  }

  void add_forward(int op) {
    for (const int d : members(op)) {
      Task task =
          compute(TaskKind::kForward, op, d, pass_seconds(graph_, op, cluster_, d, area(op, d), part(op, d).slots, 1));
      for (const int input : graph_.ops[at(op)].inputs) {
        for (const int from : members(input)) {
          const double moved = problem_.moved(action(input), from, action(op), d);
          if (moved == 0) continue;
          const Piece piece = bring(input, forward_[cell(input, from)], from, d, action(op), moved);
          task.after.push_back(piece.task);
          task.reads.push_back(piece.buffer);
        }
      }
      inputs_[cell(op, d)] = task.reads;
      const int output = allocate(d, graph_.ops[at(op)].outputs * graph_.bytes * area(op, d));
      task.makes = {output};
      const bool keeps_states = server_[at(op)] < 0 || server_[at(op)] == d;
      out_.resident[at(d)] += weight_bytes(op, d) * (1 + (keeps_states ? graph_.states : 0));
      forward_[cell(op, d)] = {add(std::move(task)), output};
    }
  }

  /// The task needs what the forward pass read and made, and its output's gradients; it makes inputs' and weights'.
  void add_backward(int op) {
    const Op& one = graph_.ops[at(op)];
    if (!has_backward(op)) return;
    for (const int d : members(op)) {
      Task task = compute(TaskKind::kBackward, op, d,
                          pass_seconds(graph_, op, cluster_, d, area(op, d), part(op, d).slots, passes_back(one)));
      const Piece& own = forward_[cell(op, d)];
      task.after.push_back(own.task);
      task.reads = inputs_[cell(op, d)];
      task.reads.push_back(own.buffer);
      for (const Piece& gradient : gradients_of(op, d)) {
        task.after.push_back(gradient.task);
        task.reads.push_back(gradient.buffer);
      }
      Piece weights;
      if (one.weights > 0) {
        weights.buffer = allocate(d, weight_bytes(op, d));
        task.makes.push_back(weights.buffer);
      }
      std::vector<int> of_inputs;
      for (const int input : one.inputs) {
        of_inputs.push_back(allocate(d, graph_.ops[at(input)].outputs * graph_.bytes * area(op, d)));
        task.makes.push_back(of_inputs.back());
      }
      const int number = add(std::move(task));
      backward_[cell(op, d)] = {number, weights.buffer};
      for (std::size_t i = 0; i < of_inputs.size(); ++i) {
        gradients_[cell(one.inputs[i], d)].push_back({action(op), {number, of_inputs[i]}});
      }
    }
  }

  /// The gradients of a part of an op's output: what its readers on this device made, and what those on others did, of
  /// which each sends one sum for all readers of one layout.
  std::vector<Piece> gradients_of(int op, int device) {
    std::vector<Piece> found;
    for (int from = 0; from < cluster_.size(); ++from) {
      std::map<int, std::vector<Piece>> by_action;
      for (const Gradient& gradient : gradients_[cell(op, from)]) by_action[gradient.action].push_back(gradient.piece);
      for (const auto& [reader, pieces] : by_action) {
        const double moved = problem_.moved(reader, from, action(op), device);
        if (moved == 0) continue;
        if (from == device) {
          found.insert(found.end(), pieces.begin(), pieces.end());
        } else {
          found.push_back(send(op, pieces, from, device, moved));
        }
      }
    }
    return found;
  }

  void add_exchange(int op) {
    if (by_server(op)) return add_server(op, server_[at(op)]);
    std::vector<int> after;
    if (exchanges(op)) {
      const std::vector<int> all = members(op);
      const Collective collective = all_reduce(cluster_, all, weight_bytes(op, all.front()));
      Task task = {TaskKind::kAllReduce, op, all.front(), -1, collective.seconds, collective.holds, {}, {}, {}};
      for (const int d : all) {
        task.after.push_back(backward_[cell(op, d)].task);
        task.reads.push_back(backward_[cell(op, d)].buffer);
      }
      after = {add(std::move(task))};
    }
    for (const int d : members(op)) {
      const Piece& gradient = backward_[cell(op, d)];
      add_update(op, d, after.empty() ? std::vector<int>{gradient.task} : after, {gradient.buffer});
    }
  }

  void add_server(int op, int server) {
    const Piece& own = backward_[cell(op, server)];
    std::vector<int> after = {own.task}, reads = {own.buffer};
    for (const int d : members(op)) {
      if (d == server) continue;
      Task push = travel(TaskKind::kPush, op, d, server, weight_bytes(op, d));
      push.after = {backward_[cell(op, d)].task};
      push.reads = {backward_[cell(op, d)].buffer};
      push.makes = {allocate(server, weight_bytes(op, d))};
      reads.push_back(push.makes.front());
      after.push_back(add(std::move(push)));
    }
    const int updated = add_update(op, server, after, reads);
    for (const int d : members(op)) {
      if (d == server) continue;
      Task pull = travel(TaskKind::kPull, op, server, d, weight_bytes(op, d));
      pull.after = {updated};
      add(std::move(pull));
    }
  }

  /// Adds an update: it reads gradients, weights and states, and writes the latter two.
  int add_update(int op, int device, std::vector<int> after, std::vector<int> reads) {
    const double numbers = static_cast<double>(reads.size()) + 2 * (1 + graph_.states);
    const double bytes = weight_bytes(op, device) * numbers;
    const double seconds = cluster_.launch + bytes / (cluster_.device(device).bandwidth * kGb);
    Task task = compute(TaskKind::kUpdate, op, device, seconds);
    task.after = std::move(after);
    task.reads = std::move(reads);
    return add(std::move(task));
  }

  const Problem& problem_;
  const Graph& graph_;
  const Cluster& cluster_;
  const Choices& choices_;
  TaskGraph out_;
  std::vector<Piece> forward_, backward_;         // by op and device
  std::vector<std::vector<int>> inputs_;          // the buffers that the forward pass read
  std::vector<std::vector<Gradient>> gradients_;  // gradients of the output, where readers made them
  std::vector<std::vector<Sent>> sent_;           // by op
  std::vector<int> server_;                       // by op; -1: none
};

}  // namespace

TaskGraph Problem::tasks(const Choices& choices) const { return Expansion(*this, choices).run(); }

}  // namespace hfta::engine::planner
