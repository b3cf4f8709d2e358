#include "fusion/modes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "base/text.hpp"
#include "fusion/passes/calls.hpp"
#include "fusion/passes/masks.hpp"
#include "fusion/passes/randomness.hpp"
#include "fusion/passes/schema.hpp"
#include "fusion/passes/specialize.hpp"

namespace hfta::fusion {
namespace {

std::string said_of(const Node& node, const std::string& what) {
  return printable(fmt::format("{}: {} ({}) {}", node.where, node.path, node.op, what));
}

// Norms whose running statistics evaluation uses instead of the batch's.
bool keeps_statistics(const Node& node) {
  if (is_number_op(node.op)) return false;
  const OpTraits& op = traits_of(node);
  return !op.statistics.mean.empty() && op.evaluation == Evaluation::kFlagOff;
}

const ValueId* value_at(const Node& node, std::size_t arg) { return argument_if<ValueId>(node, arg); }

/// Finds calls that write weights, and the weights that they write.
class Writes {
 public:
  explicit Writes(const Graph& graph) : graph_(graph), aliases_(graph), makers_(makers_of(graph)) {
    for (const Weight& weight : graph.weights) weights_.try_emplace(aliases_.set_of(weight.value), &weight);
    for (const Node& node : graph.nodes) {
      if (keeps_statistics(node)) add_counter(node);
    }
  }

  /// The weight that the call writes in a way that is not a norm's; null: none.
  [[nodiscard]] const Weight* foreign(const Node& node) const {
    if (keeps_statistics(node)) return nullptr;
    for (const ValueId id : written_by(node)) {
      const Weight* weight = weight_at(id);
      if (weight != nullptr && !counts(node, *weight) && !copies_statistics(node)) return weight;
    }
    return nullptr;
  }

  [[nodiscard]] const Weight* weight_at(ValueId id) const {
    const auto found = id == kNoValue ? weights_.end() : weights_.find(aliases_.set_of(id));
    return found == weights_.end() ? nullptr : found->second;
  }

 private:
  // num_batches_tracked stands beside the running mean.
  void add_counter(const Node& norm) {
    constexpr std::string_view kMean = "running_mean";
    const auto* value = std::get_if<ValueId>(&argument_of(norm, traits_of(norm).statistics.mean));
    const Weight* mean = value == nullptr ? nullptr : weight_at(*value);
    if (mean == nullptr) return;
    std::vector<std::string> names = mean->tied;
    names.push_back(mean->name);
    for (const std::string& name : names) {
      if (name.ends_with(kMean)) counters_.insert(name.substr(0, name.size() - kMean.size()) + "num_batches_tracked");
    }
  }

  // A norm of a functionalised export gives its statistics as outputs.
  [[nodiscard]] bool copies_statistics(const Node& node) const {
    const ValueId *to = value_at(node, 0), *from = value_at(node, 1);
    if (!is_call_of(node, "copy") || to == nullptr || from == nullptr) return false;
    const std::size_t maker = makers_[static_cast<std::size_t>(*from)];
    if (maker == kNobody || !keeps_statistics(graph_.nodes[maker])) return false;
    const Node& norm = graph_.nodes[maker];
    const RunningStatistics& statistics = traits_of(norm).statistics;
    if (statistics.first_output < 0) return false;
    const auto gives = [&](std::size_t output, std::string_view buffer) {
      return norm.outputs.size() > output && norm.outputs[output] == *from && argument_of(norm, buffer) == Arg(*to);
    };
    const auto first = static_cast<std::size_t>(statistics.first_output);
    return gives(first, statistics.mean) || gives(first + 1, statistics.variance);
  }

  // A norm's counter, which nothing reads but what adds one to it.
  [[nodiscard]] bool counts(const Node& node, const Weight& weight) const {
    const bool named = counters_.contains(weight.name) ||
                       std::any_of(weight.tied.begin(), weight.tied.end(),
                                   [&](const std::string& name) { return counters_.contains(name); });
    if (!named || is_floating(weight.dtype)) return false;
    const ValueId set = aliases_.set_of(weight.value);
    return adds_one(node, set) && std::all_of(graph_.nodes.begin(), graph_.nodes.end(), [&](const Node& other) {
             const std::vector<ValueId> inputs = inputs_of(other);
             const bool reads =
                 std::any_of(inputs.begin(), inputs.end(), [&](ValueId id) { return aliases_.set_of(id) == set; });
             return !reads || adds_one(other, set);
           });
  }

  // counter + 1, or counter.copy_(counter + 1)
  [[nodiscard]] bool adds_one(const Node& node, ValueId set) const {
    const ValueId *self = value_at(node, 0), *from = value_at(node, 1);
    if (self == nullptr || aliases_.set_of(*self) != set) return false;
    if (is_call_of(node, "add")) return argument_at(node, 1) == Arg(std::int64_t{1});
    const std::size_t maker =
        is_call_of(node, "copy") && from != nullptr ? makers_[static_cast<std::size_t>(*from)] : kNobody;
    return maker != kNobody && is_call_of(graph_.nodes[maker], "add") && adds_one(graph_.nodes[maker], set);
  }

  const Graph& graph_;
  Aliases aliases_;
  std::vector<std::size_t> makers_;
  std::map<ValueId, const Weight*> weights_;  ///< By memory.
  std::set<std::string> counters_;
};

std::string doubt_of_training_graph(const Graph& graph) {
  const Writes writes(graph);
  const std::set<std::size_t> masks = inverted_dropout(graph);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (is_number_op(node.op) || shortens_rows(node)) continue;
    if (const Weight* weight = writes.foreign(node)) return said_of(node, fmt::format("writes '{}'", weight->name));
    if (draws(node) && !draws_noise(node) && !masks.contains(i)) {
      return said_of(node, "draws at random, and not as dropout does");
    }
    if (traits_of(node).evaluation == Evaluation::kDoubtful) return said_of(node, "behaves differently in training");
  }
  return "";
}

// Weights that the output depends on.
MemorySets read_for_output(const Graph& graph) {
  MemorySets needed(graph);
  for (const ValueId id : graph.outputs) needed.mark(id);
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    if (!needed.any(node.outputs) && !needed.any(written_by(node))) continue;
    for (const ValueId id : inputs_of(node)) needed.mark(id);
  }
  return needed;
}

// Weights that evaluation writes do not stay written: it may write only a weight that nobody looks at.
std::string doubt_of_own_graph(const Graph& training, const Graph& graph) {
  const Writes writes(graph);
  const MemorySets evaluated = read_for_output(graph), trained = read_for_output(training);
  for (const Node& node : graph.nodes) {
    if (is_number_op(node.op) || shortens_rows(node)) continue;
    if (draws(node)) return said_of(node, "draws at random in evaluation");
    for (const ValueId id : written_by(node)) {
      const Weight* weight = writes.weight_at(id);
      if (weight == nullptr) continue;
      const auto index = static_cast<std::size_t>(weight - graph.weights.data());
      if (!evaluated.marked(weight->value) && !trained.marked(training.weights[index].value)) continue;
      return said_of(node, fmt::format("writes '{}' in evaluation", weight->name));
    }
  }
  return "";
}

}  // namespace

std::string doubt_of_evaluation(const Graph& graph) {
  const Graph complete = with_complete_arguments(graph);
  if (complete.evaluation != nullptr) return doubt_of_own_graph(complete, *complete.evaluation);
  return doubt_of_training_graph(complete);
}

std::string drawn_in_evaluation(const Graph& graph) {
  for (const Node& node : specialized(with_complete_arguments(graph), Purpose::kEvaluation).graph.nodes) {
    if (draws(node)) return said_of(node, "draws at random, and has no mean");
  }
  return "";
}

}  // namespace hfta::fusion
