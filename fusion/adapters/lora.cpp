#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "fusion/adapters/layer_calls.hpp"
#include "fusion/graph/place.hpp"
#include "fusion/op_traits.hpp"

namespace hfta::fusion {
namespace {

// Positions of lora_hypers().
constexpr int kRank = 0, kScale = 1, kDropout = 2;

/// The adapters of a layer.
struct Pair {
  Weight a, b;
};

std::int64_t elements_behind(const Shape& shape, std::size_t first) {
  std::int64_t elements = 1;
  for (std::size_t d = first; d < shape.size(); ++d) elements *= shape[d];
  return elements;
}

Init uniform_by(std::int64_t fan_in) {
  return {Init::Kind::kUniform, fan_in > 0 ? 1 / std::sqrt(static_cast<double>(fan_in)) : 0};
}

Pair pair_of(const LoraTarget& target, std::int64_t rank, HyperRef used) {
  const Shape& shape = target.shape;
  Pair pair;
  pair.a.name = lora_a_name(target);
  pair.b.name = lora_b_name(target);
  pair.a.dtype = pair.b.dtype = target.dtype;
  pair.a.padding = {0, used};
  pair.b.padding = {1, used};
  const bool out_last = target.kind == LoraKind::kTransposed || target.kind == LoraKind::kEmbedding;
  const std::int64_t in = shape.at(out_last ? 0 : 1), out = shape.at(out_last ? 1 : 0);
  pair.a.shape = {rank, in};
  pair.b.shape = {out, rank};
  if (target.kind == LoraKind::kConv) {
    pair.a.shape.insert(pair.a.shape.end(), shape.begin() + 2, shape.end());
    pair.b.shape.resize(shape.size(), 1);
  }
  if (target.kind == LoraKind::kEmbedding) {
    pair.b.init = {Init::Kind::kNormal, 1};
  } else {
    pair.a.init = uniform_by(elements_behind(pair.a.shape, 1));
  }
  return pair;
}

/// Rewrites one graph whose weights have the adapters at their end.
class Inserter {
 public:
  Inserter(Graph& graph, const Lora& lora, bool drops)
      : graph_(graph),
        lora_(lora),
        drops_(drops && lora.dropout),
        first_hyper_(static_cast<int>(graph.hypers.size())) {}

  void add(const std::string& module, const Pair& pair) { pairs_[module] = {add_weight(pair.a), add_weight(pair.b)}; }

  void run() {
    std::map<std::size_t, adapters::LayerCall> calls;
    for (adapters::LayerCall& call : adapters::adapted_calls(graph_)) {
      if (pairs_.contains(call.module)) calls.emplace(call.node, std::move(call));
    }
    std::vector<Node> before = std::exchange(graph_.nodes, {});
    for (std::size_t n = 0; n < before.size(); ++n) {
      graph_.nodes.push_back(std::move(before[n]));
      const auto call = calls.find(n);
      if (call != calls.end()) adapt(call->second);
    }
    for (Hyper& hyper : lora_hypers(lora_)) graph_.hypers.push_back(std::move(hyper));
  }

 private:
  ValueId add_value(std::string name, Shape shape, DType dtype) {
    graph_.values.push_back({std::move(name), std::move(shape), dtype});
    return static_cast<ValueId>(graph_.values.size()) - 1;
  }

  ValueId add_weight(Weight weight) {
    weight.value = add_value(weight.name, weight.shape, weight.dtype);
    graph_.weights.push_back(std::move(weight));
    return graph_.weights.back().value;
  }

  [[nodiscard]] const Value& value(ValueId id) const { return graph_.values[static_cast<std::size_t>(id)]; }
  [[nodiscard]] HyperRef hyper(int which) const { return {first_hyper_ + which}; }

  /// Adds a call behind the layer's, with a path below its module's.
  ValueId call(const adapters::LayerCall& layer, const char* name, const char* op,
               const std::vector<std::pair<const char*, Arg>>& args, Shape shape, ValueId out = kNoValue) {
    const Node& own = graph_.nodes[layer_node_];
    Node node{op, {}, {}, layer.module + "." + name, own.where, own.no_gradient};
    for (const auto& [arg_name, arg] : args) {
      node.names.emplace_back(arg_name);
      node.args.push_back(arg);
    }
    if (out == kNoValue) out = add_value(node.path, std::move(shape), value(result_).dtype);
    node.outputs = {out};
    graph_.nodes.push_back(std::move(node));
    return out;
  }

  // y stays the name of the sum, so that whatever reads y reads that.
  void adapt(const adapters::LayerCall& layer) {
    layer_node_ = graph_.nodes.size() - 1;
    result_ = graph_.nodes[layer_node_].outputs[0];
    const Value y = value(result_);
    const ValueId base = add_value(y.name + " (base)", y.shape, y.dtype);
    graph_.nodes[layer_node_].outputs[0] = base;
    const auto [a, b] = pairs_.at(layer.module);
    const ValueId low = layer.kind == LoraKind::kEmbedding ? looked_up(layer, a) : down(layer, a);
    const ValueId update = up(layer, low, b, y.shape);
    const ValueId scaled =
        call(layer, "lora_scale", "aten::mul.Tensor", {{"self", update}, {"other", hyper(kScale)}}, y.shape);
    call(layer, "lora_sum", "aten::add.Tensor", {{"self", base}, {"other", scaled}}, y.shape, result_);
  }

  ValueId dropped(const adapters::LayerCall& layer) {
    if (!drops_) return layer.input;
    return call(layer, "lora_dropout", "aten::dropout",
                {{"input", layer.input}, {"p", hyper(kDropout)}, {"train", true}}, value(layer.input).shape);
  }

  ValueId down(const adapters::LayerCall& layer, ValueId a) {
    const ValueId x = dropped(layer);
    if (layer.kind != LoraKind::kConv) {
      Shape shape = value(x).shape;
      shape.back() = lora_.largest_rank;
      return call(layer, "lora_A", "aten::linear", {{"input", x}, {"weight", a}, {"bias", Arg()}}, shape);
    }
    Shape shape = value(result_).shape;
    shape.at(1) = lora_.largest_rank;
    // A is a call like the layer's own, with other weights.
    Node node = graph_.nodes[layer_node_];
    node.path = layer.module + ".lora_A";
    for (std::size_t i = 0; i < node.args.size(); ++i) {
      const Arg* arg = &node.args[i];
      if (arg == argument(node, "input")) node.args[i] = x;
      if (arg == argument(node, "weight")) node.args[i] = a;
      if (arg == argument(node, "bias")) node.args[i] = Arg();
    }
    node.outputs = {add_value(node.path, shape, value(result_).dtype)};
    graph_.nodes.push_back(node);
    return node.outputs[0];
  }

  // Looks up rows of A's transpose, as the layer looks up its own.
  ValueId looked_up(const adapters::LayerCall& layer, ValueId a) {
    const Shape sizes = value(a).shape;
    const ValueId table =
        call(layer, "lora_embedding_A", "aten::transpose.int",
             {{"self", a}, {"dim0", std::int64_t{0}}, {"dim1", std::int64_t{1}}}, {sizes.at(1), sizes.at(0)});
    Node node = graph_.nodes[layer_node_];
    node.path = layer.module + ".lora_A";
    for (std::size_t i = 0; i < node.args.size(); ++i) {
      if (&node.args[i] == argument(node, "weight")) node.args[i] = table;
    }
    Shape shape = value(result_).shape;
    shape.back() = lora_.largest_rank;
    node.outputs = {add_value(node.path, shape, value(result_).dtype)};
    graph_.nodes.push_back(node);
    return node.outputs[0];
  }

  ValueId up(const adapters::LayerCall& layer, ValueId low, ValueId b, const Shape& shape) {
    if (layer.kind != LoraKind::kConv) {
      return call(layer, "lora_B", "aten::linear", {{"input", low}, {"weight", b}, {"bias", Arg()}}, shape);
    }
    const bool flat = value(b).shape.size() == 3;
    return call(layer, "lora_B", flat ? "aten::conv1d" : "aten::conv2d",
                {{"input", low}, {"weight", b}, {"bias", Arg()}}, shape);
  }

  Graph& graph_;
  const Lora& lora_;
  bool drops_;
  int first_hyper_;
  std::map<std::string, std::pair<ValueId, ValueId>> pairs_;  ///< A and B by module.
  std::size_t layer_node_ = 0;                                ///< The layer at hand,
  ValueId result_ = kNoValue;                                 ///< and what it gives.
};

// Where evaluation reads a layer's weight in more ways than training does, it would do without the adapter there.
void check_evaluation(const Graph& training, const Graph& evaluation, const std::vector<LoraTarget>& targets,
                      const Lora& lora) {
  const std::vector<adapters::LayerCall> trained = adapters::adapted_calls(training);
  const std::vector<adapters::LayerCall> evaluated = adapters::adapted_calls(evaluation);
  const auto before = adapters::other_readers(training, trained), now = adapters::other_readers(evaluation, evaluated);
  for (const LoraTarget& target : targets) {
    const auto call = std::find_if(trained.begin(), trained.end(),
                                   [&](const adapters::LayerCall& one) { return one.module == target.module; });
    if (call == trained.end() || !call->weight) continue;
    const auto calls_in = [&](const std::vector<adapters::LayerCall>& calls) {
      return std::count_if(calls.begin(), calls.end(), [&](const auto& one) { return one.module == target.module; });
    };
    // Readers beside the layer's calls are as many as in training, or stand in the place of such calls.
    const std::vector<const Node*>& readers = now[*call->weight];
    const bool fewer_calls = calls_in(evaluated) < calls_in(trained);
    if (readers.empty() || (readers.size() <= before[*call->weight].size() && !fewer_calls)) continue;
    throw Error(ErrorKind::kConfig,
                fmt::format("{}: '{}' is a layer in training, but in evaluation {} reads its weight, without an "
                            "adapter; leave it out of the targets, or let both compute it alike",
                            lora.where, target.module, place_of(*readers.front())));
  }
}

}  // namespace

const char* name_of(LoraScale scale) { return scale == LoraScale::kStandard ? "standard" : "rslora"; }

std::string lora_a_name(const LoraTarget& target) {
  return target.module + (target.kind == LoraKind::kEmbedding ? ".lora_embedding_A" : ".lora_A.weight");
}

std::string lora_b_name(const LoraTarget& target) {
  return target.module + (target.kind == LoraKind::kEmbedding ? ".lora_embedding_B" : ".lora_B.weight");
}

double lora_scale(const Lora& lora) {
  const auto rank = static_cast<double>(lora.rank);
  return lora.alpha / (lora.scale == LoraScale::kStandard ? rank : std::sqrt(rank));
}

std::vector<Hyper> lora_hypers(const Lora& lora) {
  std::vector<Hyper> hypers = {{"lora.rank", static_cast<double>(lora.rank)}, {"lora.scale", lora_scale(lora)}};
  if (lora.dropout) hypers.push_back({"lora.dropout", *lora.dropout});
  return hypers;
}

void insert_lora(Graph& graph, const Lora& lora) {
  if (lora.rank < 1 || lora.rank > lora.largest_rank) {
    throw Error(ErrorKind::kConfig,
                fmt::format("{}: found rank {}, wanted 1 to {}", lora.where, lora.rank, lora.largest_rank));
  }
  const HyperRef used{static_cast<int>(graph.hypers.size()) + kRank};
  const std::vector<LoraTarget> targets = lora_targets(graph, lora);
  std::unique_ptr<Graph> evaluation = graph.evaluation ? std::make_unique<Graph>(*graph.evaluation) : nullptr;
  Inserter training(graph, lora, true);
  std::optional<Inserter> evaluated;
  if (evaluation) check_evaluation(graph, *evaluation, targets, lora);
  if (evaluation) evaluated.emplace(*evaluation, lora, false);
  for (const LoraTarget& target : targets) {
    const Pair pair = pair_of(target, lora.largest_rank, used);
    training.add(target.module, pair);
    if (evaluated) evaluated->add(target.module, pair);
  }
  training.run();
  if (!evaluated) return;
  evaluated->run();
  graph.evaluation = std::shared_ptr<const Graph>(std::move(evaluation));
}

}  // namespace hfta::fusion
