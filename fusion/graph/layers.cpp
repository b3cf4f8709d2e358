#include "fusion/layers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/error.hpp"
#include "base/text.hpp"
#include "fusion/graph/batch.hpp"
#include "fusion/graph/layer_builder.hpp"

namespace hfta::fusion {
namespace {

std::vector<LayerKind> all_kinds() {
  std::vector<LayerKind> kinds;
  for (auto family : {linear_and_conv_kinds, norm_kinds, pool_kinds, activation_kinds, shape_kinds}) {
    for (LayerKind& kind : family()) kinds.push_back(std::move(kind));
  }
  return kinds;
}

const std::vector<LayerKind>& kind_table() {
  static const std::vector<LayerKind> table = all_kinds();
  return table;
}

const LayerKind* find_kind(const std::string& name) {
  for (const LayerKind& kind : kind_table()) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

[[noreturn]] void fail(const std::string& where, const std::string& message) {
  throw Error(ErrorKind::kConfig, where + (where.empty() ? "" : ": ") + message);
}

// Names become parts of weights' names ("stem.weight"), which dots would make ambiguous.
bool usable_name(const std::string& name) {
  return !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) && name != "input" && name != "layers" &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-'; });
}

void check_input(const Shape& input) {
  const bool sized = std::all_of(input.begin() + (input.empty() ? 0 : 1), input.end(), [](auto s) { return s >= 1; });
  if (!begins_with_batch(input) || !sized || !element_count(input)) {
    fail("", "model: found input of shape " + to_text(input) + ", wanted [N, ...] of sizes from 1");
  }
}

void check_weights(const Graph& graph, const std::string& where) {
  std::int64_t total = 0;
  for (const Weight& weight : graph.weights) total += element_count(weight.shape).value();
  if (total > kMostElements) {
    fail(where, fmt::format("layers: found {} weights in all, wanted at most {}", total, kMostElements));
  }
}

}  // namespace

const std::vector<std::string>& layer_kinds() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const LayerKind& kind : kind_table()) out.push_back(kind.name);
    return out;
  }();
  return names;
}

const std::vector<LayerArgInfo>& layer_args(const std::string& kind) {
  static const std::map<std::string, std::vector<LayerArgInfo>> infos = [] {
    std::map<std::string, std::vector<LayerArgInfo>> out;
    for (const LayerKind& entry : kind_table()) {
      for (const ArgRule& rule : entry.args) out[entry.name].push_back({rule.name, rule.fusible});
    }
    return out;
  }();
  static const std::vector<LayerArgInfo> none;
  const auto found = infos.find(kind);
  return found == infos.end() ? none : found->second;
}

Graph build_graph(const std::vector<LayerSpec>& layers, const Shape& input, DType dtype) {
  check_input(input);
  Graph graph;
  graph.values.push_back({"input", input, dtype});
  graph.inputs = {0};
  NamedOutputs outputs{{"input", 0}};
  ValueId current = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const LayerSpec& spec = layers[i];
    const std::string path = fmt::format("layers.{}", i);
    const LayerKind* kind = find_kind(spec.kind);
    if (kind == nullptr) {
      fail(spec.where, fmt::format("{}: found '{}', wanted a kind of layer{}", path, printable(spec.kind),
                                   suggestion(spec.kind, layer_kinds())));
    }
    if (!spec.name.empty() && (!usable_name(spec.name) || outputs.contains(spec.name))) {
      fail(spec.where, fmt::format("{} ({}): name: found '{}', wanted {}", path, spec.kind, printable(spec.name),
                                   outputs.contains(spec.name) ? "one that no earlier layer has"
                                                               : "letters, digits, _ and -, a letter first"));
    }
    LayerBuilder layer(graph, spec, *kind, i, current, outputs, dtype);
    kind->emit(layer);
    current = layer.value();
    outputs[path] = current;
    if (!spec.name.empty()) outputs[spec.name] = current;
    check_weights(graph, spec.where);
  }
  graph.outputs = {current};
  if (graph.parameter_count() == 0) {
    fail(layers.empty() ? "" : layers[0].where,
         "layers: found nothing to train, wanted at least one layer with weights");
  }
  return graph;
}

}  // namespace hfta::fusion
