// What of a task is frozen, and what arrays train behind it: FusedTrainer's other half.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "engine/fused/fused_trainer.hpp"
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

// Products with weights that are not trained.
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

// Why features are kept for no model of such tasks, whatever its layers; "": they are.
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

const TaskData& FusedTrainer::trained_data(const PreparedTask& task) {
  const TaskData& whole = on_device(task);
  const std::shared_ptr<const fusion::SplitModel>& split = frozen(task).split;
  return split == nullptr ? whole : features_.rest_of(whole, split);
}

const fusion::FrozenPrefix& FusedTrainer::frozen(const PreparedTask& task) {
  const std::string why_not = why_no_features(task, device());
  const auto [found, is_new] = frozen_.try_emplace(why_not + model_key(task.graph));
  if (!is_new || !has_frozen_layers(task.graph)) return found->second;
  found->second.prevented = why_not;
  if (why_not.empty()) found->second = fusion::frozen_prefix_of(task.graph);
  return found->second;
}

const fusion::Graph& FusedTrainer::trained_graph(const PreparedTask& task) {
  const std::shared_ptr<const fusion::SplitModel>& split = frozen(task).split;
  return split == nullptr ? task.graph : split->rest;
}

std::optional<FeaturePlan> FusedTrainer::feature_plan(const PreparedTask& task) {
  const fusion::FrozenPrefix& prefix = frozen(task);
  if (prefix.split == nullptr && prefix.prevented.empty()) return std::nullopt;
  FeaturePlan plan;
  plan.prevented = prefix.prevented;
  if (prefix.split == nullptr) return plan;
  const fusion::Splits& splits = load(task.spec, task.input_types).host;
  plan.shared = true;
  plan.samples =
      splits.train.size + (splits.validation ? splits.validation->size : 0) + (splits.test ? splits.test->size : 0);
  plan.bytes_per_sample = prefix.split->bytes_per_sample;
  plan.budget = features_.budget();
  plan.kept_bytes = std::min(plan.budget, fusion::kept_bytes(*prefix.split, plan.samples));
  for (const fusion::Weight& weight : prefix.split->prefix.weights) {
    plan.weight_bytes += fusion::size_of(weight.dtype) * fusion::elements_of(weight.shape, 1);
  }
  return plan;
}

}  // namespace hfta::engine
