#include "fusion/cpu/known.hpp"

#include <algorithm>
#include <string_view>

#include "fusion/cpu/aliases.hpp"
#include "fusion/graph/uses.hpp"
#include "fusion/op_traits.hpp"

namespace hfta::fusion::cpu {
namespace {

// Whether the op by itself gives the same for the same arguments, in the graph's tensors alone.
bool is_function(const Node& node) {
  const OpTraits* traits = op_traits(node.op);
  return traits != nullptr && traits->draws == Draws::kNothing && traits->statistics.mean.empty() && !has_hyper(node);
}

class Analysis {
 public:
  Analysis(const Graph& graph, const std::set<std::size_t>& excluded)
      : graph_(graph),
        excluded_(excluded),
        memory_(memory_of(graph)),
        constant_(constant_weights(graph)),
        known_(graph.values.size()),
        calls_(graph.nodes.size()) {}

  std::vector<bool> run() {
    do {
      follow();
    } while (withdraw_overwritten());
    return calls_;
  }

 private:
  [[nodiscard]] bool is_tensor(ValueId id) const { return !graph_.values[static_cast<std::size_t>(id)].number; }

  [[nodiscard]] bool is_known(std::size_t i) const {
    const Node& node = graph_.nodes[i];
    if (excluded_.contains(i) || is_number_op(node.op) || !is_function(node)) return false;
    const std::vector<ValueId> inputs = inputs_of(node);
    const bool shape_only = reads_shape_only(node);
    return std::all_of(inputs.begin() + (shape_only ? 1 : 0), inputs.end(),
                       [&](ValueId id) { return !is_tensor(id) || known_[static_cast<std::size_t>(id)]; }) &&
           std::all_of(node.outputs.begin(), node.outputs.end(),
                       [&](ValueId id) { return id == kNoValue || is_tensor(id); });
  }

  void follow() {
    std::fill(known_.begin(), known_.end(), false);
    for (std::size_t w = 0; w < constant_.size(); ++w) {
      known_[static_cast<std::size_t>(graph_.weights[w].value)] = constant_[w];
    }
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      calls_[i] = is_known(i);
      for (const ValueId id : graph_.nodes[i].outputs) {
        if (id != kNoValue) known_[static_cast<std::size_t>(id)] = calls_[i];
      }
    }
  }

  // The makers of what unknown calls write into are not known either. Returns whether there were such.
  bool withdraw_overwritten() {
    std::set<ValueId> written;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const ValueId to = calls_[i] ? kNoValue : written_by(graph_.nodes[i]);
      if (to != kNoValue) written.insert(memory_[static_cast<std::size_t>(to)]);
    }
    const std::size_t before = excluded_.size();
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      for (const ValueId id : graph_.nodes[i].outputs) {
        const bool lost = calls_[i] && id != kNoValue && written.contains(memory_[static_cast<std::size_t>(id)]);
        if (lost) excluded_.insert(i);
      }
    }
    return excluded_.size() > before;
  }

  const Graph& graph_;
  std::set<std::size_t> excluded_;
  std::vector<ValueId> memory_;  ///< By value.
  std::vector<bool> constant_;   ///< By weight.
  std::vector<bool> known_;      ///< By value.
  std::vector<bool> calls_;
};

}  // namespace

bool reads_shape_only(const Node& node) {
  const OpTraits* traits = op_traits(node.op);
  const std::string_view name = base_name(node.op);
  return traits != nullptr && traits->kind == OpClass::kFactory && !node.args.empty() &&
         std::holds_alternative<ValueId>(node.args[0]) && (name.ends_with("_like") || name.starts_with("new_"));
}

std::vector<bool> constant_weights(const Graph& graph) {
  const std::vector<ValueId> memory = memory_of(graph);
  std::set<ValueId> written;  // memory: in place, or as statistics of batches
  for (const Node& node : graph.nodes) {
    const ValueId to = written_by(node);
    if (to != kNoValue) written.insert(memory[static_cast<std::size_t>(to)]);
    const OpTraits* traits = op_traits(node.op);
    if (traits == nullptr || traits->statistics.mean.empty()) continue;
    for (const ValueId id : inputs_of(node)) written.insert(memory[static_cast<std::size_t>(id)]);
  }
  std::vector<bool> constant;
  for (const Weight& weight : graph.weights) {
    const bool stored = weight.stored != nullptr && weight.init.kind == Init::Kind::kStored && !weight.pairs;
    constant.push_back(stored && !weight.trained && !weight.per_slot &&
                       !written.contains(memory[static_cast<std::size_t>(weight.value)]) &&
                       static_cast<std::int64_t>(weight.stored->bytes.size()) <= kMostKnownBytes);
  }
  return constant;
}

std::vector<bool> known_calls(const Graph& graph, const std::set<std::size_t>& excluded) {
  return Analysis(graph, excluded).run();
}

}  // namespace hfta::fusion::cpu
