#include "fusion/passes/specialize.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <set>

#include "fusion/passes/masks.hpp"
#include "fusion/passes/schema.hpp"
#include "fusion/passes/split_products.hpp"

namespace hfta::fusion {
namespace {

const std::set<std::string>& dropouts() {
  static const std::set<std::string> names = {
      "aten::dropout",        "aten::dropout_",       "aten::feature_dropout",       "aten::feature_dropout_",
      "aten::alpha_dropout",  "aten::alpha_dropout_", "aten::feature_alpha_dropout", "aten::feature_alpha_dropout_",
      "aten::native_dropout",
  };
  return names;
}

const std::set<std::string>& recurrent_layers() {
  static const std::set<std::string> names = {"aten::lstm.input", "aten::gru.input", "aten::rnn_tanh.input",
                                              "aten::rnn_relu.input"};
  return names;
}

bool is_false(const Arg& arg) {
  const auto* flag = std::get_if<bool>(&arg);
  return flag != nullptr && !*flag;
}

bool is_zero(const Arg& arg) {
  const auto* number = std::get_if<double>(&arg);
  const auto* whole = std::get_if<std::int64_t>(&arg);
  return (number != nullptr && *number == 0) || (whole != nullptr && *whole == 0);
}

// NaN where argument i is no literal.
double number_at(const Node& node, std::size_t i) {
  if (i >= node.args.size()) return std::numeric_limits<double>::quiet_NaN();
  if (const auto* number = std::get_if<double>(&node.args[i])) return *number;
  if (const auto* whole = std::get_if<std::int64_t>(&node.args[i])) return static_cast<double>(*whole);
  return std::numeric_limits<double>::quiet_NaN();
}

// ---- evaluation ----

// Layers that keep running statistics use them; those that keep none go on with the batch's.
void turn_off(Node& node) {
  for (const char* name : {"train", "training", "use_input_stats"}) {
    const int i = argument_of(node, name);
    if (i < 0) continue;
    const int statistics = argument_of(node, "running_mean");
    if (statistics >= 0 && std::holds_alternative<std::monostate>(node.args[static_cast<std::size_t>(statistics)])) {
      continue;
    }
    node.args[static_cast<std::size_t>(i)] = false;
  }
  const int dropout = argument_of(node, "dropout_p");
  if (dropout >= 0) node.args[static_cast<std::size_t>(dropout)] = 0.0;
}

Node replaced(const Node& node, const char* op, std::vector<Arg> args) {
  Node out = node;
  out.op = op;
  out.args = std::move(args);
  return out;
}

// Every element is `mean`; the arguments that say of what kind (dtype, device, ...) follow the first one.
Node filled(const Node& node, const char* op, const Arg& mean) {
  std::vector<Arg> args = {node.args[0], mean};
  args.insert(args.end(), node.args.begin() + 1, node.args.end());
  return replaced(node, op, std::move(args));
}

std::optional<Node> at_mean(const Node& node, bool floored) {
  const std::string& op = node.op;
  const Arg uniform = floored ? 0.0 : 0.5;
  if (op == "aten::rand") return filled(node, "aten::full", uniform);
  if (op == "aten::randn") return filled(node, "aten::full", 0.0);
  if (op == "aten::rand_like") return filled(node, "aten::full_like", uniform);
  if (op == "aten::randn_like") return filled(node, "aten::full_like", 0.0);
  if (op == "aten::bernoulli") return replaced(node, "aten::clone", {node.args[0], {}});
  if (op == "aten::bernoulli.p") {
    return replaced(node, "aten::full_like", {node.args[0], node.args[1], {}, {}, {}, {}, {}});
  }
  if (op == "aten::bernoulli_.float" || op == "aten::normal_") {
    return replaced(node, "aten::fill_.Scalar", {node.args[0], node.args[1]});
  }
  if (op == "aten::bernoulli_.Tensor") return replaced(node, "aten::copy_", {node.args[0], node.args[1], false});
  const double first = number_at(node, 1), second = number_at(node, 2);
  if (op == "aten::uniform_" && !std::isnan(first + second)) {
    return replaced(node, "aten::fill_.Scalar", {node.args[0], (first + second) / 2});
  }
  if (op == "aten::exponential_" && !std::isnan(first)) {
    return replaced(node, "aten::fill_.Scalar", {node.args[0], 1 / first});
  }
  return std::nullopt;
}

void substitute(Node& node, const std::vector<ValueId>& stands_for) {
  for (Arg& arg : node.args) {
    for_each_value(arg, [&](ValueId& id) { id = stands_for[static_cast<std::size_t>(id)]; });
  }
}

// ---- what is needed ----

SpecializedGraph pruned(SpecializedGraph reading) {
  Graph& graph = reading.graph;
  MemorySets needed(graph), buffers(graph);
  needed.mark(graph.output);
  for (const Weight& weight : graph.weights) buffers.mark(weight.value);
  std::vector<bool> live(graph.nodes.size(), false);
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    const std::vector<ValueId> written = written_by(node);
    live[i] = needed.any(node.outputs) || needed.any(written) || buffers.any(written);
    if (!live[i]) continue;
    for (const ValueId id : inputs_of(node)) needed.mark(id);
  }
  SpecializedGraph out;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!live[i]) continue;
    out.index.push_back(reading.index[i]);
    out.graph.nodes.push_back(std::move(graph.nodes[i]));
    Node& node = out.graph.nodes.back();
    // A buffer is no place for a step's history.
    if (writes_in_place(node) && buffers.any(written_by(node))) node.no_gradient = true;
  }
  graph.nodes = std::move(out.graph.nodes);
  out.graph = std::move(graph);
  return out;
}

}  // namespace

bool draws(const Node& node) {
  if (is_number_op(node.op)) return false;
  if (dropouts().contains(node.op)) return !is_false(node.args[2]) && !is_zero(node.args[1]);
  if (recurrent_layers().contains(node.op)) {
    return !is_false(node.args[6]) && !is_zero(node.args[5]) && std::get<std::int64_t>(node.args[4]) > 1;
  }
  const int dropout = argument_of(node, "dropout_p");
  if (dropout >= 0) return !is_zero(node.args[static_cast<std::size_t>(dropout)]);
  const int training = argument_of(node, "training");
  if (training >= 0 && is_false(node.args[static_cast<std::size_t>(training)])) return false;
  return node.op.starts_with("aten::rand") || argument_of(node, "generator") >= 0;
}

SpecializedGraph specialized_for_training(const Graph& graph) {
  SpecializedGraph reading{graph, std::vector<int>(graph.nodes.size())};
  std::iota(reading.index.begin(), reading.index.end(), 0);
  return pruned(with_split_products(std::move(reading)));
}

bool turned_off(const Node& node) {
  return dropouts().contains(node.op) || recurrent_layers().contains(node.op) || node.op == "aten::rrelu" ||
         argument_of(node, "dropout_p") >= 0;
}

SpecializedGraph specialized_for_evaluation(const Graph& trained) {
  const bool own = trained.evaluation != nullptr;
  const Graph& graph = own ? *trained.evaluation : trained;
  SpecializedGraph reading{graph, {}};
  reading.graph.nodes.clear();
  MemorySets weights(graph);
  for (const Weight& weight : graph.weights) weights.mark(weight.value);
  std::vector<ValueId> stands_for(graph.values.size());
  std::iota(stands_for.begin(), stands_for.end(), 0);
  const Floored floored = own ? Floored() : find_floored(graph);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    Node node = graph.nodes[i];
    substitute(node, stands_for);
    if (!own && !is_number_op(node.op)) turn_off(node);
    if (auto mean = own ? std::nullopt : at_mean(node, floored.uniform.contains(i))) node = std::move(*mean);
    const std::vector<ValueId> written = written_by(node);
    if ((weights.any(written) && writes_in_place(node)) || floored.floor.contains(i)) {
      for (const ValueId id : node.outputs) {
        if (id != kNoValue) stands_for[static_cast<std::size_t>(id)] = std::get<ValueId>(node.args[0]);
      }
      continue;
    }
    reading.graph.nodes.push_back(std::move(node));
    reading.index.push_back(static_cast<int>(i));
  }
  reading.graph.output = stands_for[static_cast<std::size_t>(graph.output)];
  return pruned(with_split_products(std::move(reading)));
}

}  // namespace hfta::fusion
