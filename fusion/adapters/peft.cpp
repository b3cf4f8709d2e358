#include "fusion/adapters/peft.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "base/error.hpp"
#include "base/text.hpp"
#include "fusion/adapters/layer_calls.hpp"
#include "fusion/adapters/low_rank.hpp"
#include "fusion/graph/place.hpp"
#include "fusion/graph/uses.hpp"
#include "fusion/op_traits.hpp"

namespace hfta::fusion {
namespace {

// The prefix that PEFT puts in front of the model's own names. Modules of the user's may stand before it.
constexpr std::string_view kWrapper = "base_model.model.";
constexpr std::string_view kBase = ".base_layer";

/// A container that holds parameters of a layer's adapters by adapter: "lora_A" of "q_proj.lora_A.default.weight".
struct Container {
  std::string_view name;
  bool has_weight;  ///< The adapter is a module, whose parameter is called weight, in the file as well.
};

constexpr std::array<Container, 5> kContainers = {{{"lora_A", true},
                                                   {"lora_B", true},
                                                   {"lora_embedding_A", false},
                                                   {"lora_embedding_B", false},
                                                   {"lora_magnitude_vector", false}}};

std::string_view own_part(std::string_view name) {
  const std::size_t at = name.rfind(kWrapper);
  return at == std::string_view::npos ? name : name.substr(at + kWrapper.size());
}

// "a" and "x.weight" of "a.modules_to_save.x.weight".
struct Cut {
  std::string before, behind;
};
std::optional<Cut> cut_at(std::string_view name, std::string_view word) {
  const std::string middle = fmt::format(".{}.", word);
  const std::size_t at = name.find(middle);
  if (at == std::string_view::npos) return std::nullopt;
  return Cut{std::string(name.substr(0, at)), std::string(name.substr(at + middle.size()))};
}

// The adapter's name, and what follows it with its dot.
Cut adapter_of(const std::string& text) {
  const std::size_t dot = text.find('.');
  return dot == std::string::npos ? Cut{text, ""} : Cut{text.substr(0, dot), text.substr(dot)};
}

std::optional<PeftName> adapter_name(std::string_view name) {
  for (const Container& container : kContainers) {
    const auto cut = cut_at(name, container.name);
    if (!cut) continue;
    const Cut adapter = adapter_of(cut->behind);
    const std::string tail = container.has_weight ? adapter.behind : "";
    return PeftName{PeftName::Part::kAdapter, fmt::format("{}.{}{}", cut->before, container.name, tail), cut->before,
                    adapter.before};
  }
  return std::nullopt;
}

std::string model_name(std::string_view name) {
  std::string plain(name);
  const std::size_t at = plain.find(std::string(kBase) + ".");
  if (at != std::string::npos) plain.erase(at, kBase.size());
  return plain;
}

// The number that the output of DoRA's adapter is multiplied by: the first literal factor on the way from B.
class ScaleFinder {
 public:
  explicit ScaleFinder(const Graph& graph) : graph_(graph) {
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      for (const Arg& arg : graph.nodes[n].args) {
        if (const auto* id = std::get_if<ValueId>(&arg)) readers_[*id].push_back(n);
      }
    }
  }

  [[nodiscard]] std::optional<double> from(ValueId b) const {
    constexpr int kFar = 6;  // transposes, products and changes of dtype in between
    std::vector<ValueId> reached = {b};
    for (int step = 0; step < kFar; ++step) {
      std::vector<ValueId> next;
      for (const ValueId id : reached) {
        const auto readers = readers_.find(id);
        if (readers == readers_.end()) continue;
        for (const std::size_t n : readers->second) {
          if (const auto factor = factor_of(graph_.nodes[n])) return factor;
          for (const ValueId out : graph_.nodes[n].outputs) {
            if (out != kNoValue) next.push_back(out);
          }
        }
      }
      reached = std::move(next);
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] std::optional<double> factor_of(const Node& node) const {
    if (node.op != "aten::mul.Tensor" && node.op != "aten::mul.Scalar") return std::nullopt;
    const Arg* other = argument(node, "other");
    return other == nullptr ? std::nullopt : adapters::number_in(graph_, *other);
  }

  const Graph& graph_;
  std::map<ValueId, std::vector<std::size_t>> readers_;
};

double fan_in(const Shape& shape) {
  double elements = 1;
  for (std::size_t d = 1; d < shape.size(); ++d) elements *= static_cast<double>(shape[d]);
  return elements;
}

// Whether the name is of an entry in that container.
bool in_container(std::string_view name, std::string_view container) { return cut_at(name, container).has_value(); }

// How a graph uses its layers.
class LayerUses {
 public:
  explicit LayerUses(const Graph& graph)
      : graph_(graph),
        calls_(adapters::adapted_calls(graph)),
        readers_(adapters::other_readers(graph, calls_)),
        makers_(makers_of(graph)) {}

  // `module`: the layer's path in the graph.
  void note(Adapter& adapter, const std::string& module) const {
    for (const adapters::LayerCall& call : calls_) {
      if (call.module != module) continue;
      if (!call.own) adapter.called_by = place_of(graph_.nodes[call.node]);
      const std::size_t maker = makers_[static_cast<std::size_t>(call.input)];
      adapter.prepares_input |= call.kind == LoraKind::kConv && maker != kNobody && graph_.nodes[maker].path == module;
    }
    for (std::size_t i = 0; i < readers_.size(); ++i) {
      if (graph_.weights[i].name != adapter.weight || readers_[i].empty()) continue;
      adapter.read_by = place_of(*readers_[i].front());
    }
  }

 private:
  const Graph& graph_;
  std::vector<adapters::LayerCall> calls_;
  std::vector<std::vector<const Node*>> readers_;
  std::vector<std::size_t> makers_;
};

// In training, and in evaluation where that has a graph of its own.
std::vector<LayerUses> uses_of(const Graph& graph) {
  std::vector<LayerUses> uses;
  uses.emplace_back(graph);
  if (graph.evaluation != nullptr) uses.emplace_back(*graph.evaluation);
  return uses;
}

}  // namespace

std::vector<Adapter> own_adapters(const Graph& graph, const Lora& lora) {
  const std::vector<LayerUses> uses = uses_of(graph);
  std::vector<Adapter> adapters;
  for (const LoraTarget& target : lora_targets(graph, lora)) {
    Adapter& adapter =
        adapters.emplace_back(Adapter{target.module, target.kind, target.quantized ? "" : target.module + ".weight",
                                      lora_a_name(target), lora_b_name(target), "", lora_scale(lora)});
    for (const LayerUses& one : uses) one.note(adapter, target.module);
  }
  return adapters;
}

std::vector<Adapter> peft_adapters(const Graph& graph) {
  const ScaleFinder scales(graph);
  std::map<std::string, Adapter> found;  // by module
  std::map<std::string, ValueId> outputs;
  std::set<std::string> names;
  std::vector<std::string> order;
  std::map<std::string, std::string> layers;  // by module: that of the layer's own call
  for (const Weight& weight : graph.weights) {
    if (in_container(weight.name, "trainable_tokens_delta")) {
      throw Error(ErrorKind::kConfig,
                  fmt::format("'{}': found rows of a table that PEFT trains by themselves (trainable_token_indices), "
                              "wanted adapters alone",
                              printable(weight.name)));
    }
    const PeftName name = peft_name(weight.name);
    if (name.part != PeftName::Part::kAdapter) continue;
    names.insert(name.adapter);
    if (!found.contains(name.module)) order.push_back(name.module);
    Adapter& adapter = found[name.module];
    adapter.module = name.module;
    if (in_container(weight.name, "lora_magnitude_vector")) adapter.magnitude = weight.name;
    if (in_container(weight.name, "lora_A") || in_container(weight.name, "lora_embedding_A")) adapter.a = weight.name;
    if (weight.name.ends_with(".bias")) {
      throw Error(ErrorKind::kConfig,
                  fmt::format("'{}': found an adapter with a bias, wanted one without", printable(weight.name)));
    }
    if (!in_container(weight.name, "lora_B") && !in_container(weight.name, "lora_embedding_B")) continue;
    adapter.b = weight.name;
    outputs[name.module] = weight.value;
  }
  if (names.size() > 1) {
    throw Error(ErrorKind::kConfig, fmt::format("found the adapters {} in one model, wanted one of them",
                                                join(std::vector<std::string>(names.begin(), names.end()))));
  }
  for (const adapters::LayerCall& call : adapters::adapted_calls(graph)) {
    if (!call.module.ends_with(kBase)) continue;
    const std::string module(own_part(call.module.substr(0, call.module.size() - kBase.size())));
    const auto adapter = found.find(module);
    if (adapter == found.end()) continue;
    layers[module] = call.module;
    adapter->second.kind = call.kind;
    if (call.weight) adapter->second.weight = call.module + ".weight";
  }
  const std::vector<LayerUses> uses = uses_of(graph);
  std::vector<Adapter> adapters;
  for (const std::string& module : order) {
    Adapter& adapter = found.at(module);
    if (adapter.a.empty() || adapter.b.empty() || !layers.contains(module)) {
      throw Error(ErrorKind::kConfig,
                  fmt::format("'{}': found an adapter that is none of a linear layer, a convolution or an embedding",
                              printable(module)));
    }
    if (adapter.magnitude.empty()) {
      const std::string& layer = layers.at(module);
      const Graph& used = graph.evaluation != nullptr ? *graph.evaluation : graph;
      const adapters::LowRank change = adapters::low_rank(used, layer, adapter.a, adapter.b);
      adapter.scale = change.scale;
      adapter.pads_apart = change.pads_apart;
      for (const LayerUses& one : uses) one.note(adapter, layer);
    } else {  // DoRA reads the weight for its length, too
      adapter.scale = scales.from(outputs.at(module)).value_or(1);
    }
    adapters.push_back(adapter);
  }
  return adapters;
}

PeftName peft_name(std::string_view name) {
  const std::string_view own = own_part(name);
  if (const auto adapter = adapter_name(own)) return *adapter;
  if (const auto saved = cut_at(own, "modules_to_save")) {
    const Cut adapter = adapter_of(saved->behind);
    return {PeftName::Part::kSaved, saved->before + adapter.behind, saved->before, adapter.before};
  }
  if (const auto original = cut_at(own, "original_module")) {
    return {PeftName::Part::kOriginal, original->before + "." + original->behind, original->before, ""};
  }
  return {PeftName::Part::kModel, model_name(own), "", ""};
}

bool is_peft_model(const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(),
                     [](const std::string& name) { return peft_name(name).part == PeftName::Part::kAdapter; });
}

std::optional<Init> peft_init(std::string_view name, const Shape& shape) {
  if (in_container(name, "lora_A") && name.ends_with(".weight")) {
    const double fan = fan_in(shape);
    return fan > 0 ? Init{Init::Kind::kUniform, 1 / std::sqrt(fan)} : Init{};
  }
  if (in_container(name, "lora_B") || in_container(name, "lora_embedding_A")) return Init{};
  if (in_container(name, "lora_embedding_B")) return Init{Init::Kind::kNormal, 1};
  return std::nullopt;
}

bool is_peft_constant(std::string_view name) { return in_container(name, "lora_magnitude_vector"); }

}  // namespace hfta::fusion
