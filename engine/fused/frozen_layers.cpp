#include "engine/fused/frozen_layers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "fusion/graph/uses.hpp"
#include "fusion/op_traits.hpp"

namespace hfta::engine {
namespace {

// Two tasks whose models are the same, weights included, have the same prefix.
std::string model_key(const fusion::Graph& graph) {
  std::string key = graph.signature();
  for (const fusion::Weight& weight : graph.weights) key += fmt::format("{} ", fmt::ptr(weight.stored.get()));
  return key;
}

// Whether the graph has products with weights that are not trained.
bool has_frozen_layers(const fusion::Graph& graph) {
  std::set<fusion::ValueId> frozen;
  for (const fusion::Weight& weight : graph.weights) {
    if (!weight.trained && fusion::is_floating(weight.dtype) && weight.shape.size() >= 2) frozen.insert(weight.value);
  }
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const fusion::Node& node) {
    const fusion::OpTraits* op = fusion::op_traits(node.op);
    const bool product =
        op != nullptr && (op->kind == fusion::OpClass::kProduct || op->kind == fusion::OpClass::kConvolution ||
                          op->kind == fusion::OpClass::kRecurrent);
    const std::vector<fusion::ValueId> inputs = fusion::inputs_of(node);
    return product &&
           std::any_of(inputs.begin(), inputs.end(), [&](fusion::ValueId id) { return frozen.contains(id); });
  });
}

// Why no features are kept for such tasks, whatever the model's layers; "": they may be kept.
std::string why_no_features(const PreparedTask& task, const c10::Device& device) {
  if (!device.is_cpu()) return "a GPU runs frozen layers once for each step of all trials";
  if (!task.spec.recipe.phases.empty()) return "with train.phases frozen layers run in every phase";
  if (task.spec.recipe.precision == fusion::Precision::kBfloat16)
    return "with precision bfloat16 frozen layers run in every step";
  if (task.graph.fixed_batch == 0) return "";
  return fmt::format(
      "the model was exported for batches of exactly {}: export it with a dynamic batch dimension, and "
      "frozen layers run once for each sample",
      task.graph.fixed_batch);
}

}  // namespace

const fusion::FrozenPrefix& FrozenLayers::prefix(const PreparedTask& task) {
  const std::string why_not = why_no_features(task, device_);
  const auto [found, is_new] = prefixes_.try_emplace(why_not + model_key(task.graph));
  if (!is_new || !has_frozen_layers(task.graph)) return found->second;
  found->second.prevented = why_not;
  if (why_not.empty()) found->second = fusion::frozen_prefix_of(task.graph);
  return found->second;
}

const fusion::Graph& FrozenLayers::trained_graph(const PreparedTask& task) {
  const std::shared_ptr<const fusion::SplitModel>& split = prefix(task).split;
  return split == nullptr ? task.graph : split->rest;
}

}  // namespace hfta::engine
