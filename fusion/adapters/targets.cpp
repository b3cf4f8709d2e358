// Which layers are adapted, and what of a model stays trained.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "fusion/adapters/layer_calls.hpp"
#include "fusion/graph/names.hpp"
#include "fusion/graph/uses.hpp"
#include "fusion/op_traits.hpp"

namespace hfta::fusion {
namespace {

[[noreturn]] void fail(const Lora& lora, const std::string& what) {
  throw Error(ErrorKind::kConfig, fmt::format("{}: {}", lora.where, what));
}

bool is_target(const Lora& lora, const std::string& module) {
  return std::any_of(lora.targets.begin(), lora.targets.end(), [&](const std::string& pattern) {
    return matches(pattern, module) || matches("*." + pattern, module);
  });
}

bool is_linear(const adapters::LayerCall& call) {
  return call.kind == LoraKind::kLinear || call.kind == LoraKind::kTransposed;
}

bool wants_all_linear(const Lora& lora) { return lora.targets == std::vector<std::string>{kAllLinear}; }

bool names_any(const std::vector<std::string>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return names_parameter(pattern, name); });
}

bool names_weight(const std::vector<std::string>& patterns, const Weight& weight) {
  return names_any(patterns, weight.name) || std::any_of(weight.tied.begin(), weight.tied.end(),
                                                         [&](const auto& name) { return names_any(patterns, name); });
}

// Whether the layer's own weight is trained; a weight in integers is not.
bool is_trained(const Lora& lora, const Graph& graph, const adapters::LayerCall& call) {
  return call.weight && names_weight(lora.train, graph.weights[*call.weight]);
}

// The layers that targets mean, by module.
std::vector<adapters::LayerCall> meant(const std::vector<adapters::LayerCall>& calls, const Graph& graph,
                                       const Lora& lora) {
  std::vector<adapters::LayerCall> found;
  if (!wants_all_linear(lora)) {
    std::copy_if(calls.begin(), calls.end(), std::back_inserter(found),
                 [&](const adapters::LayerCall& call) { return is_target(lora, call.module); });
    return found;
  }
  std::copy_if(calls.begin(), calls.end(), std::back_inserter(found), is_linear);
  if (found.empty()) return found;
  const std::string head = found.back().module;
  std::erase_if(found,
                [&](const adapters::LayerCall& call) { return call.module == head || is_trained(lora, graph, call); });
  return found;
}

void check_patterns(const std::vector<adapters::LayerCall>& calls, const Lora& lora) {
  std::vector<std::string> modules;
  for (const adapters::LayerCall& call : calls) {
    if (std::find(modules.begin(), modules.end(), call.module) == modules.end()) modules.push_back(call.module);
  }
  for (const std::string& pattern : lora.targets) {
    if (wants_all_linear(lora)) continue;
    const bool any = std::any_of(modules.begin(), modules.end(), [&](const std::string& module) {
      return matches(pattern, module) || matches("*." + pattern, module);
    });
    if (any) continue;
    fail(lora, fmt::format("found no linear layer, convolution or embedding '{}' to adapt{}", pattern,
                           hint(pattern, modules)));
  }
}

void check_convolution(const Graph& graph, const adapters::LayerCall& call, const Lora& lora) {
  if (call.kind != LoraKind::kConv) return;
  const Node& node = graph.nodes[call.node];
  const Arg* groups = argument(node, "groups");
  const Arg* dilation = argument(node, "dilation");
  const bool grouped = groups != nullptr && *groups != Arg(std::int64_t{1});
  bool dilated = false;
  if (dilation != nullptr) {
    const auto* sizes = std::get_if<std::vector<std::int64_t>>(dilation);
    dilated = sizes == nullptr || std::any_of(sizes->begin(), sizes->end(), [](std::int64_t d) { return d != 1; });
  }
  if (!grouped && !dilated) return;
  fail(lora, fmt::format("'{}' is a {} convolution, which cannot be adapted; leave it out of the targets", call.module,
                         grouped ? "grouped" : "dilated"));
}

}  // namespace

std::vector<LoraTarget> lora_targets(const Graph& graph, const Lora& lora) {
  const std::vector<adapters::LayerCall> calls = adapters::adapted_calls(graph);
  check_patterns(calls, lora);
  std::vector<LoraTarget> targets;
  for (const adapters::LayerCall& call : meant(calls, graph, lora)) {
    check_convolution(graph, call, lora);
    if (is_trained(lora, graph, call)) {
      fail(lora, fmt::format("'{}' is among the targets and in train; wanted it in one of them", call.module));
    }
    const bool known = std::any_of(targets.begin(), targets.end(),
                                   [&](const LoraTarget& target) { return target.module == call.module; });
    if (!known) targets.push_back({call.module, call.kind, !call.weight, call.shape, call.dtype});
  }
  if (targets.empty()) fail(lora, "the model has no linear layer to adapt but its last");
  return targets;
}

void freeze_base(Graph& graph, const Lora& lora, const std::vector<std::string>& parameters,
                 const std::vector<std::string>& frozen) {
  for (const std::string& name : parameters) {
    if (!names_any(lora.train, name) || !names_any(frozen, name)) continue;
    fail(lora, fmt::format("found '{}' in train and in model.freeze; wanted it in one of them", name));
  }
  for (const std::string& pattern : lora.train) {
    const bool any = std::any_of(parameters.begin(), parameters.end(),
                                 [&](const std::string& name) { return names_parameter(pattern, name); });
    if (any) continue;
    fail(lora, fmt::format("found no parameter '{}' to train{}", pattern, hint(pattern, with_modules(parameters))));
  }
  for (Weight& weight : graph.weights) {
    const bool parameter = std::find(parameters.begin(), parameters.end(), weight.name) != parameters.end();
    weight.trained = parameter && is_floating(weight.dtype) && names_weight(lora.train, weight);
  }
}

namespace adapters {
namespace {

/// Ops that are layers with a weight: names of their arguments.
struct LayerOp {
  const char* op;
  LoraKind kind;
  const char* input;
  const char* weight;
};

constexpr std::array<LayerOp, 7> kLayerOps = {{{"aten::linear", LoraKind::kLinear, "input", "weight"},
                                               {"aten::addmm", LoraKind::kTransposed, "mat1", "mat2"},
                                               {"aten::conv1d", LoraKind::kConv, "input", "weight"},
                                               {"aten::conv1d.padding", LoraKind::kConv, "input", "weight"},
                                               {"aten::conv2d", LoraKind::kConv, "input", "weight"},
                                               {"aten::conv2d.padding", LoraKind::kConv, "input", "weight"},
                                               {"aten::embedding", LoraKind::kEmbedding, "indices", "weight"}}};

ValueId value_of(const Arg* arg) {
  const auto* id = arg == nullptr ? nullptr : std::get_if<ValueId>(arg);
  return id == nullptr ? kNoValue : *id;
}

// A tensor that belongs to two modules has a name in each; the call says which of them it is.
std::string module_of(const Node& node, const Weight& weight) {
  constexpr std::string_view kSuffix = ".weight";
  std::vector<std::string> names = weight.tied;
  names.insert(names.begin(), weight.name);
  std::string first;
  for (const std::string& name : names) {
    if (!name.ends_with(kSuffix)) continue;
    std::string module = name.substr(0, name.size() - kSuffix.size());
    if (module == node.path) return module;
    if (first.empty()) first = module;
  }
  return first;
}

// A linear call also takes a vector for its weight, which is no layer's.
bool has_layers_shape(LoraKind kind, const Shape& weight) {
  return kind == LoraKind::kConv ? weight.size() > 2 : weight.size() == 2;
}

// addmm(bias, x, W) with factors of its own is no layer.
bool is_plain(const Node& node) {
  for (const char* factor : {"beta", "alpha"}) {
    const Arg* arg = node.op == "aten::addmm" ? argument(node, factor) : nullptr;
    if (arg != nullptr && *arg != Arg(std::int64_t{1}) && *arg != Arg(1.0)) return false;
  }
  return true;
}

}  // namespace

std::vector<LayerCall> layer_calls(const Graph& graph) {
  std::map<ValueId, std::size_t> weights;
  for (std::size_t i = 0; i < graph.weights.size(); ++i) {
    const Weight& weight = graph.weights[i];
    if (is_floating(weight.dtype) && !weight.pairs) weights[weight.value] = i;
  }
  std::vector<LayerCall> calls;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const auto row =
        std::find_if(kLayerOps.begin(), kLayerOps.end(), [&](const LayerOp& op) { return node.op == op.op; });
    if (row == kLayerOps.end() || node.outputs.size() != 1 || node.outputs[0] == kNoValue || !is_plain(node)) continue;
    const ValueId input = value_of(argument(node, row->input));
    const auto weight = weights.find(value_of(argument(node, row->weight)));
    if (input == kNoValue || weight == weights.end()) continue;
    const Weight& own = graph.weights[weight->second];
    if (!has_layers_shape(row->kind, own.shape)) continue;
    const std::string module = module_of(node, own);
    if (module.empty()) continue;
    calls.push_back({n, row->kind, module, weight->second, own.shape, own.dtype, input, module == node.path});
  }
  const std::vector<LayerCall> quantized = quantized_calls(graph);
  const std::size_t count = calls.size();
  calls.insert(calls.end(), quantized.begin(), quantized.end());
  std::inplace_merge(calls.begin(), calls.begin() + static_cast<std::ptrdiff_t>(count), calls.end(),
                     [](const LayerCall& a, const LayerCall& b) { return a.node < b.node; });
  return calls;
}

std::vector<LayerCall> adapted_calls(const Graph& graph) {
  std::vector<LayerCall> calls = layer_calls(graph);
  std::map<std::string, std::pair<bool, LoraKind>> chosen;  // by module: whether it makes the calls, and their kind
  for (const LayerCall& call : calls) {
    const auto [known, is_new] = chosen.try_emplace(call.module, call.own, call.kind);
    if (!is_new && call.own && !known->second.first) known->second = {true, call.kind};
  }
  std::erase_if(calls, [&](const LayerCall& call) { return chosen.at(call.module) != std::pair(call.own, call.kind); });
  return calls;
}

std::vector<std::vector<const Node*>> other_readers(const Graph& graph, const std::vector<LayerCall>& adapted) {
  std::map<ValueId, std::size_t> weights;
  for (std::size_t i = 0; i < graph.weights.size(); ++i) weights[graph.weights[i].value] = i;
  std::set<std::pair<std::size_t, std::size_t>> layers;  // node and weight
  for (const LayerCall& call : adapted) {
    if (call.weight) layers.emplace(call.node, *call.weight);
  }
  std::vector<std::vector<const Node*>> readers(graph.weights.size());
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const ValueId id : inputs_of(graph.nodes[n])) {
      const auto weight = weights.find(id);
      if (weight == weights.end() || layers.contains({n, weight->second})) continue;
      std::vector<const Node*>& own = readers[weight->second];
      if (own.empty() || own.back() != &graph.nodes[n]) own.push_back(&graph.nodes[n]);
    }
  }
  return readers;
}

}  // namespace adapters
}  // namespace hfta::fusion
