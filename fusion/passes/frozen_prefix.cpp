#include "fusion/frozen_prefix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/hash.hpp"
#include "fusion/graph/sizes.hpp"
#include "fusion/graph/uses.hpp"
#include "fusion/passes/frozen_layers.hpp"
#include "fusion/passes/out_of_place.hpp"
#include "fusion/passes/rows.hpp"
#include "fusion/passes/same_values.hpp"
#include "fusion/passes/schema.hpp"
#include "fusion/passes/vertex_cut.hpp"

namespace hfta::fusion {
namespace {

constexpr double kMultipliesPerByte = 16;
constexpr std::int64_t kLargestBlock = 8;

Graph complete(const Graph& model) {
  Graph graph = with_writes_out_of_place(with_complete_arguments(model));
  if (graph.evaluation != nullptr) {
    graph.evaluation = std::make_shared<const Graph>(with_writes_out_of_place(*graph.evaluation));
  }
  return graph;
}

// Calls that the outputs or a write need, where `given` need not be computed.
std::vector<bool> live_calls(const Graph& graph, const std::vector<bool>& given) {
  MemorySets needed(graph), kept(graph);
  for (const Weight& weight : graph.weights) kept.mark(weight.value);
  std::vector<bool> wanted(graph.values.size(), false), live(graph.nodes.size(), false);
  const auto want = [&](ValueId id) {
    if (id == kNoValue || given[static_cast<std::size_t>(id)]) return;
    wanted[static_cast<std::size_t>(id)] = true;
    needed.mark(id);
  };
  for (const ValueId id : graph.outputs) want(id);
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    const std::vector<ValueId> written = written_by(graph.nodes[i]);
    live[i] = needed.any(written) || kept.any(written) ||
              std::any_of(graph.nodes[i].outputs.begin(), graph.nodes[i].outputs.end(),
                          [&](ValueId id) { return id != kNoValue && wanted[static_cast<std::size_t>(id)]; });
    if (!live[i]) continue;
    for (const ValueId id : inputs_of(graph.nodes[i])) want(id);
  }
  return live;
}

bool can_be_kept(const Value& value) {
  const bool whole = value.dtype == DType::kBool || value.dtype == DType::kUInt8 || value.dtype == DType::kInt8 ||
                     value.dtype == DType::kInt16 || value.dtype == DType::kInt32 || value.dtype == DType::kInt64;
  const bool number = value.dtype == DType::kFloat32 || value.dtype == DType::kFloat64;
  return (whole || number) && sample_dim(value) == SampleDim{};
}

std::int64_t bytes_per_sample(const Value& value) { return bytes_of(value.shape, value.dtype, 1); }

class Splitter {
 public:
  explicit Splitter(const Graph& model)
      : graph_(complete(model)), frozen_(frozen_weights(graph_)), depends_on_(dependence_of(graph_, frozen_)) {
    same_.resize(graph_.values.size());
    for (std::size_t id = 0; id < same_.size(); ++id) same_[id] = static_cast<ValueId>(id);
    if (graph_.evaluation == nullptr) return;
    same_ = same_values(graph_, *graph_.evaluation);
    for (std::size_t id = 0; id < same_.size(); ++id) {
      const bool of_sample = depends_on_[id] == DependsOn::kSample;
      if (of_sample && same_[id] == kNoValue && !is_input(static_cast<ValueId>(id))) depends_on_[id] = DependsOn::kMore;
    }
  }

  [[nodiscard]] const Graph& graph() const { return graph_; }
  [[nodiscard]] const std::vector<bool>& frozen() const { return frozen_; }
  [[nodiscard]] const std::vector<DependsOn>& depends_on() const { return depends_on_; }

  [[nodiscard]] std::shared_ptr<const SplitModel> split() const {
    const std::vector<ValueId> features = cut();
    const std::optional<std::int64_t> block = smallest_batch();
    if (features.empty() || !block || !are_apart(features)) return nullptr;
    auto split = std::make_shared<SplitModel>();
    split->block = *block;
    add_prefix(features, *split);
    for (const ValueId id : features) {
      split->bytes_per_sample = sum_of_sizes(split->bytes_per_sample, bytes_per_sample(value(id)));
    }
    for (const Node& node : split->prefix.nodes) split->multiplies_per_sample += multiplies_of(node, split->prefix);
    if (split->multiplies_per_sample / kMultipliesPerByte < static_cast<double>(split->bytes_per_sample))
      return nullptr;
    add_rest(features, *split);
    return split;
  }

 private:
  [[nodiscard]] const Value& value(ValueId id) const { return graph_.values[static_cast<std::size_t>(id)]; }
  [[nodiscard]] bool of_sample(ValueId id) const {
    return id != kNoValue && !value(id).number && depends_on_[static_cast<std::size_t>(id)] == DependsOn::kSample;
  }
  [[nodiscard]] bool is_input(ValueId id) const {
    return std::find(graph_.inputs.begin(), graph_.inputs.end(), id) != graph_.inputs.end();
  }
  // Whether nothing of the call's results is a trial's own.
  [[nodiscard]] bool is_shared(const Node& node) const {
    return std::all_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) {
      return id == kNoValue || depends_on_[static_cast<std::size_t>(id)] != DependsOn::kMore;
    });
  }

  // Evaluation may have written down once what training computes twice.
  [[nodiscard]] bool are_apart(const std::vector<ValueId>& features) const {
    std::set<ValueId> theirs;
    for (const ValueId id : features) theirs.insert(same_[static_cast<std::size_t>(id)]);
    return theirs.size() == features.size();
  }

  [[nodiscard]] std::optional<std::int64_t> smallest_batch() const {
    for (std::int64_t n = 1; n <= kLargestBlock; ++n) {
      if (graph_.limits.allow(n)) return n;
    }
    return std::nullopt;
  }

  // Between the frozen layers, which are computed once, and the calls that are each trial's own.
  [[nodiscard]] std::vector<ValueId> cut() const {
    VertexCut problem(graph_.values.size());
    const std::vector<bool> live = live_calls(graph_, std::vector<bool>(graph_.values.size(), false));
    for (std::size_t id = 0; id < graph_.values.size(); ++id) {
      const auto own = static_cast<ValueId>(id);
      if (of_sample(own) && !is_input(own) && can_be_kept(value(own)))
        problem.price(id, std::max<std::int64_t>(1, bytes_per_sample(value(own))));
    }
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (live[i]) add_call(graph_.nodes[i], problem);
    }
    for (const ValueId id : graph_.outputs) {
      if (of_sample(id)) problem.sink(static_cast<std::size_t>(id));
    }
    if (graph_.evaluation != nullptr) add_evaluation(problem);
    const std::vector<bool> chosen = problem.cheapest();
    std::vector<ValueId> features;
    for (std::size_t id = 0; id < chosen.size(); ++id) {
      if (chosen[id]) features.push_back(static_cast<ValueId>(id));
    }
    return features;
  }

  void add_call(const Node& node, VertexCut& problem) const {
    const bool shared = is_shared(node);
    for (const ValueId id : inputs_of(node)) {
      if (!shared) problem.sink(static_cast<std::size_t>(id));
      for (const ValueId output : node.outputs) {
        if (shared && output != kNoValue) problem.edge(static_cast<std::size_t>(id), static_cast<std::size_t>(output));
      }
    }
    if (!shared || multiplies_of(node, graph_) == 0) return;
    for (const ValueId output : node.outputs) {
      if (of_sample(output)) problem.source(static_cast<std::size_t>(output));
    }
  }

  // Adds as sinks the values that are read by calls which only evaluation has.
  void add_evaluation(VertexCut& problem) const {
    const Graph& evaluation = *graph_.evaluation;
    std::map<ValueId, std::size_t> ours;
    for (std::size_t id = 0; id < same_.size(); ++id) {
      const bool shared = depends_on_[id] != DependsOn::kMore && same_[id] != kNoValue;
      if (shared) ours.try_emplace(same_[id], id);
    }
    const std::vector<bool> live = live_calls(evaluation, std::vector<bool>(evaluation.values.size(), false));
    const auto sink = [&](ValueId id) {
      if (const auto found = ours.find(id); found != ours.end()) problem.sink(found->second);
    };
    for (std::size_t i = 0; i < evaluation.nodes.size(); ++i) {
      const Node& node = evaluation.nodes[i];
      const bool both = std::all_of(node.outputs.begin(), node.outputs.end(),
                                    [&](ValueId id) { return id == kNoValue || ours.contains(id); });
      if (!live[i] || both) continue;
      for (const ValueId id : inputs_of(node)) sink(id);
    }
    for (const ValueId id : evaluation.outputs) sink(id);
  }

  // The calls that features need, their values numbered anew.
  void add_prefix(const std::vector<ValueId>& features, SplitModel& split) const {
    Graph needed = graph_;
    needed.evaluation = nullptr;
    needed.outputs = features;
    const std::vector<bool> live = live_calls(needed, std::vector<bool>(needed.values.size(), false));
    std::vector<ValueId> renamed(graph_.values.size(), kNoValue);
    Graph& prefix = split.prefix;
    const auto rename = [&](ValueId id) {
      ValueId& own = renamed[static_cast<std::size_t>(id)];
      if (own != kNoValue) return own;
      own = static_cast<ValueId>(prefix.values.size());
      prefix.values.push_back(value(id));
      prefix.values.back().name = fmt::format("v{}", own);
      return own;
    };
    std::set<ValueId> read(features.begin(), features.end());
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!live[i] || writes_weight(graph_.nodes[i])) continue;
      for (const ValueId id : inputs_of(graph_.nodes[i])) read.insert(id);
    }
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
      if (!read.contains(graph_.inputs[i])) continue;
      prefix.inputs.push_back(rename(graph_.inputs[i]));
      split.prefix_inputs.push_back(i);
    }
    Fnv1a held;
    for (const Weight& weight : graph_.weights) {
      if (!read.contains(weight.value)) continue;
      prefix.weights.push_back(weight);
      prefix.weights.back().value = rename(weight.value);
      if (weight.stored != nullptr) held.add(weight.stored->bytes);
    }
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!live[i] || writes_weight(graph_.nodes[i])) continue;
      Node& node = prefix.nodes.emplace_back(graph_.nodes[i]);
      for (Arg& arg : node.args) {
        for_each_value(arg, [&](ValueId& id) { id = rename(id); });
      }
      for (ValueId& id : node.outputs) {
        if (id != kNoValue) id = rename(id);
      }
    }
    for (const ValueId id : features) prefix.outputs.push_back(rename(id));
    split.key = fmt::format("{} samples at a time\n{:016x}\n{}", split.block, held.value(), prefix.signature());
  }

  [[nodiscard]] bool writes_weight(const Node& node) const { return !written_by(node).empty(); }

  void add_rest(const std::vector<ValueId>& features, SplitModel& split) const {
    split.rest = rest_of(graph_, features);
    std::vector<ValueId> theirs;
    for (const ValueId id : features) theirs.push_back(same_[static_cast<std::size_t>(id)]);
    Graph evaluation;
    if (graph_.evaluation != nullptr) evaluation = rest_of(*graph_.evaluation, theirs);
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
      const bool evaluated = graph_.evaluation != nullptr && reads_value(evaluation, graph_.evaluation->inputs[i]);
      if (!evaluated && !reads_value(split.rest, graph_.inputs[i])) continue;
      split.rest_inputs.push_back(i);
      split.rest.inputs.push_back(graph_.inputs[i]);
      if (graph_.evaluation != nullptr) evaluation.inputs.push_back(graph_.evaluation->inputs[i]);
    }
    if (graph_.evaluation == nullptr) return;
    split.rest.evaluation = std::make_shared<const Graph>(std::move(evaluation));
  }

  static bool reads_value(const Graph& graph, ValueId id) {
    return std::find(graph.outputs.begin(), graph.outputs.end(), id) != graph.outputs.end() ||
           std::any_of(graph.nodes.begin(), graph.nodes.end(), [id](const Node& node) {
             const std::vector<ValueId> inputs = inputs_of(node);
             return std::find(inputs.begin(), inputs.end(), id) != inputs.end();
           });
  }

  // The graph behind the features, which are its only inputs so far.
  static Graph rest_of(const Graph& graph, const std::vector<ValueId>& features) {
    Graph rest = graph;
    rest.evaluation = nullptr;
    std::vector<bool> given(graph.values.size(), false);
    for (const ValueId id : features) given[static_cast<std::size_t>(id)] = true;
    const std::vector<bool> live = live_calls(graph, given);
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      // Randomness is counted by a call's position, so that nobody moves up: passes/prune.cpp drops what does nothing.
      if (!live[i]) rest.nodes[i] = Node{"number::add", {std::int64_t{0}, std::int64_t{0}}, {}, "", "", false, {}};
      for (ValueId& id : rest.nodes[i].outputs) {
        if (id != kNoValue && given[static_cast<std::size_t>(id)]) id = kNoValue;
      }
    }
    rest.inputs = features;
    return rest;
  }

  Graph graph_;
  std::vector<bool> frozen_;
  std::vector<DependsOn> depends_on_;
  std::vector<ValueId> same_;  // by value: evaluation's, which is the value itself where it has no graph of its own
};

}  // namespace

FrozenPrefix frozen_prefix_of(const Graph& model) {
  const Splitter splitter(model);
  return {splitter.split(), what_prevents_sharing(splitter.graph(), splitter.frozen(), splitter.depends_on())};
}

}  // namespace hfta::fusion
