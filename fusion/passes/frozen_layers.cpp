#include "fusion/passes/frozen_layers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "fusion/graph/uses.hpp"
#include "fusion/passes/randomness.hpp"
#include "fusion/passes/schema.hpp"

namespace hfta::fusion {
namespace {

// A size of one sample, or of a weight. Costs are estimates: doubles hold those of any file's sizes.
double real(std::int64_t size) { return std::abs(static_cast<double>(size)); }

double elements(const Value& value) {
  double count = 1;
  for (const std::int64_t size : value.shape) count *= real(size);
  return count;
}

const Value* value_of(const Node& node, const Graph& graph, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const Arg* arg = find_argument(node, name);
    const auto* id = arg == nullptr ? nullptr : std::get_if<ValueId>(arg);
    if (id != nullptr) return &graph.values[static_cast<std::size_t>(*id)];
  }
  return nullptr;
}

// "bert" of "bert.encoder.layer.0.dropout": the module that holds all of them.
std::string common_module(const std::vector<const Node*>& nodes) {
  std::string common = nodes.front()->path;
  for (const Node* node : nodes) {
    while (!common.empty() && node->path != common && !node->path.starts_with(common + ".")) {
      const std::size_t dot = common.rfind('.');
      common.resize(dot == std::string::npos ? 0 : dot);
    }
  }
  return common;
}

std::string place_of(const Node& node) {
  const std::string op(base_name(node.op));
  return node.path.empty() ? op : fmt::format("{} ({})", node.path, op);
}

// By value: whether it is made of data and of frozen weights alone, whatever else is true of it.
std::vector<bool> made_of_frozen(const Graph& graph, const std::vector<bool>& frozen) {
  std::vector<bool> made(graph.values.size(), false);
  for (std::size_t i = 0; i < graph.weights.size(); ++i) {
    const Weight& weight = graph.weights[i];
    made[static_cast<std::size_t>(weight.value)] = frozen[i] || (!weight.trained && !weight.per_slot);
  }
  for (const ValueId id : graph.inputs) made[static_cast<std::size_t>(id)] = true;
  for (const Node& node : graph.nodes) {
    const std::vector<ValueId> inputs = inputs_of(node);
    const bool all =
        std::all_of(inputs.begin(), inputs.end(), [&](ValueId id) { return made[static_cast<std::size_t>(id)]; });
    for (const ValueId id : node.outputs) {
      if (id != kNoValue) made[static_cast<std::size_t>(id)] = all;
    }
  }
  return made;
}

/// Calls at which values of one sample end, in front of frozen layers that could go on.
class Barriers {
 public:
  Barriers(const Graph& graph, const std::vector<bool>& frozen, const std::vector<DependsOn>& depends_on)
      : graph_(graph), depends_on_(depends_on), made_(made_of_frozen(graph, frozen)), written_(graph) {
    for (const Node& node : graph.nodes) {
      for (const ValueId id : written_by(node)) written_.mark(id);
    }
    std::vector<bool> leads(graph.values.size(), false);  // by value: to a frozen layer not of one sample
    for (std::size_t i = graph.nodes.size(); i-- > 0;) {
      const Node& node = graph.nodes[i];
      if (!is_frozen(node) || is_number_op(node.op)) continue;
      const bool layer = multiplies_of(node, graph) > 0 && reads_weight(node) && ends_here(node.outputs);
      const bool on = layer || any(node.outputs, leads);
      for (const ValueId id : inputs_of(node)) leads[at(id)] = leads[at(id)] || on;
      if (on && ends_here(node.outputs) && !ends_here(inputs_of(node))) found_.push_back(&node);
      if (on && (by_batch_statistics(node) || (draws_noise(node) && draws(node)))) modes_.push_back(&node);
    }
    std::reverse(found_.begin(), found_.end());
  }

  [[nodiscard]] std::string text() const {
    if (found_.empty()) return "";
    const Node& first = *found_.front();
    const bool noise = draws(first), statistics = !noise && by_batch_statistics(first);
    if (!noise && !statistics && has_hyper(first)) {
      return fmt::format("{} in front of frozen layers takes a number that is each trial's own", place_of(first));
    }
    if (!noise && !statistics && written_.any(first.outputs)) {
      return fmt::format("{} in front of frozen layers is overwritten later: they run for every batch anew",
                         place_of(first));
    }
    if (!noise && !statistics) {
      return fmt::format("{} in front of frozen layers may mix the samples of a batch: they run for every batch anew",
                         place_of(first));
    }
    const char* what = noise ? "draws random numbers" : "takes its batch's statistics";
    if (noise && !draws_noise(first)) return fmt::format("{} in front of frozen layers {}", place_of(first), what);
    const std::string others = modes_.size() > 1 ? fmt::format(", as do {} more such calls", modes_.size() - 1) : "";
    const std::string module = common_module(modes_);
    return fmt::format(
        "{} in front of frozen layers {}{}: call model.{}eval() before the export, and they are the same for all "
        "trials",
        place_of(first), what, others, module.empty() ? "" : module + ".");
  }

 private:
  static std::size_t at(ValueId id) { return static_cast<std::size_t>(id); }
  static bool any(const std::vector<ValueId>& ids, const std::vector<bool>& of) {
    return std::any_of(ids.begin(), ids.end(), [&](ValueId id) { return id != kNoValue && of[at(id)]; });
  }
  [[nodiscard]] bool is_frozen(const Node& node) const { return any(node.outputs, made_); }
  [[nodiscard]] bool ends_here(const std::vector<ValueId>& ids) const {
    return std::any_of(ids.begin(), ids.end(), [&](ValueId id) {
      return id != kNoValue && !graph_.values[at(id)].number && depends_on_[at(id)] == DependsOn::kMore &&
             !is_weight(id);
    });
  }
  [[nodiscard]] bool is_weight(ValueId id) const {
    return std::any_of(graph_.weights.begin(), graph_.weights.end(), [&](const Weight& w) { return w.value == id; });
  }
  [[nodiscard]] bool reads_weight(const Node& node) const {
    const std::vector<ValueId> inputs = inputs_of(node);
    return std::any_of(inputs.begin(), inputs.end(), [&](ValueId id) { return is_weight(id); });
  }

  const Graph& graph_;
  const std::vector<DependsOn>& depends_on_;
  std::vector<bool> made_;
  MemorySets written_;
  std::vector<const Node*> found_;  // in order
  std::vector<const Node*> modes_;  // those that evaluation turns off
};

}  // namespace

std::vector<bool> frozen_weights(const Graph& graph) {
  MemorySets written(graph);
  for (const Node& node : graph.nodes) {
    for (const ValueId id : written_by(node)) written.mark(id);
  }
  std::vector<bool> frozen;
  for (const Weight& weight : graph.weights) {
    const Init::Kind kind = weight.init.kind;
    const bool given = (kind == Init::Kind::kStored && weight.stored != nullptr) || kind == Init::Kind::kZeros ||
                       kind == Init::Kind::kOnes;
    frozen.push_back(given && !weight.trained && !weight.per_slot && !written.marked(weight.value));
  }
  return frozen;
}

double multiplies_of(const Node& node, const Graph& graph) {
  if (is_number_op(node.op) || node.outputs.empty() || node.outputs[0] == kNoValue) return 0;
  const OpClass kind = traits_of(node).kind;
  const double out = elements(graph.values[static_cast<std::size_t>(node.outputs[0])]);
  if (kind == OpClass::kAttention) {
    const Value* key = value_of(node, graph, {"key"});
    return key == nullptr || key->shape.size() < 2 ? 0 : 2 * out * real(key->shape[key->shape.size() - 2]);
  }
  if (kind == OpClass::kConvolution) {
    const Value* weight = value_of(node, graph, {"weight"});
    return weight == nullptr || weight->shape.empty() ? 0
                                                      : out * elements(*weight) / std::max(1.0, real(weight->shape[0]));
  }
  if (kind == OpClass::kRecurrent) {
    double weights = 0;  // each number of them meets every step
    for (const ValueId id : inputs_of(node)) {
      const Value& value = graph.values[static_cast<std::size_t>(id)];
      if (!value.number && value.shape.size() == 2 && !sample_dim(value)) weights += elements(value);
    }
    const Shape& shape = graph.values[static_cast<std::size_t>(node.outputs[0])].shape;
    return shape.empty() ? 0 : weights * (out / std::max(1.0, real(shape.back())));
  }
  if (kind != OpClass::kProduct) return 0;
  const Value* left = value_of(node, graph, {"input", "mat1", "batch1", "self"});
  return left == nullptr || left->shape.empty() ? 0 : out * real(left->shape.back());
}

std::string what_prevents_sharing(const Graph& graph, const std::vector<bool>& frozen,
                                  const std::vector<DependsOn>& depends_on) {
  return Barriers(graph, frozen, depends_on).text();
}

}  // namespace hfta::fusion
