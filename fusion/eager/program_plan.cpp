#include "fusion/eager/program_plan.hpp"

#include <algorithm>
#include <utility>

#include "fusion/eager/fused_relus.hpp"
#include "fusion/graph/arguments.hpp"
#include "fusion/passes/randomness.hpp"
#include "fusion/passes/schema.hpp"

namespace hfta::fusion {
namespace {

const Candidate* pick(const BatchingRule& rule, const Node& node, const Lowering& lowering) {
  const auto chosen = lowering.families.find(rule.family);
  const Candidate* first = nullptr;
  for (const Candidate& candidate : rule.candidates) {
    if (!supports(candidate, node)) continue;
    if (first == nullptr) first = &candidate;
    if (chosen != lowering.families.end() && chosen->second == candidate.name) return &candidate;
  }
  return first;
}

// Whether the node has the form that BatchingRule::per_slot takes.
bool second_is_hyper(const Node& node) {
  return argument_if<HyperRef>(node, 1) != nullptr && argument_if<ValueId>(node, 0) != nullptr;
}

// Whether the rule reads each number of the node, also one of the slot's own.
bool reads_all_numbers(const BatchingRule* rule, const Node& node) {
  return rule != nullptr && (rule->reads_hypers || !has_hyper(node));
}

// Samples may be the same for all slots or each slot's own; a slot's bits must not depend on which. So whatever comes
// from samples has a slot dimension in the second part: also what is computed there before slots differ, constants that
// are written with data, and all values that see the same memory where it is written.
std::vector<bool> with_slot_dimension(const Graph& graph, const Sharing& sharing) {
  std::vector<bool> own = sharing.slotwise;
  const auto is_own = [&](ValueId id) { return own[static_cast<std::size_t>(id)]; };
  for (std::size_t id = 0; id < own.size(); ++id) {
    own[id] = own[id] || (sharing.from_data[id] && !sharing.after_divergence[id]);
  }
  for (const ValueId id : graph.inputs) own[static_cast<std::size_t>(id)] = true;
  for (std::vector<bool> before; before != own;) {
    before = own;
    MemorySets written(graph);
    for (const Node& node : graph.nodes) {
      const std::vector<ValueId> inputs = inputs_of(node);
      const bool from_own = !is_number_op(node.op) && std::any_of(inputs.begin(), inputs.end(), is_own);
      for (const ValueId id : node.outputs) {
        if (id == kNoValue || graph.values[static_cast<std::size_t>(id)].number) continue;
        if (from_own && sharing.after_divergence[static_cast<std::size_t>(id)])
          own[static_cast<std::size_t>(id)] = true;
        if (is_own(id) && sharing.written[static_cast<std::size_t>(id)]) written.mark(id);
      }
    }
    for (std::size_t id = 0; id < own.size(); ++id) {
      own[id] = own[id] || (sharing.written[id] && written.marked(static_cast<ValueId>(id)));
    }
  }
  return own;
}

// By value: whether its memory has views, and somebody writes it.
std::vector<bool> with_written_views(const Graph& graph, const Sharing& sharing) {
  MemorySets viewed(graph);
  for (const Node& node : graph.nodes) {
    if (!makes_view(node) || writes_in_place(node)) continue;
    for (const ValueId id : node.outputs) viewed.mark(id);
  }
  std::vector<bool> found = sharing.written;
  for (std::size_t id = 0; id < found.size(); ++id) found[id] = found[id] && viewed.marked(static_cast<ValueId>(id));
  return found;
}

// Whether the call belongs to the second part.
bool differs_between_slots(const Node& node, const Sharing& sharing) {
  const std::vector<ValueId> inputs = inputs_of(node);
  const std::vector<ValueId> written = written_by(node);
  const auto after_divergence = [&](ValueId id) {
    return id != kNoValue && sharing.after_divergence[static_cast<std::size_t>(id)];
  };
  return std::any_of(inputs.begin(), inputs.end(), after_divergence) ||
         std::any_of(written.begin(), written.end(), after_divergence) ||
         std::any_of(node.outputs.begin(), node.outputs.end(), after_divergence);
}

class Planner {
 public:
  Planner(SpecializedGraph reading, const std::vector<bool>& owned, const Lowering& lowering, const at::Device& device)
      : lowering_(lowering), device_(device) {
    plan_.sharing = sharing_of(reading, owned);
    plan_.graph = std::move(reading.graph);
    plan_.index = std::move(reading.index);
    plan_.owned = owned;
    plan_.own = with_slot_dimension(plan_.graph, plan_.sharing);
    plan_.written_view = with_written_views(plan_.graph, plan_.sharing);
  }

  ProgramPlan run() && {
    for (std::size_t i = 0; i < plan_.graph.nodes.size(); ++i) {
      const bool second = differs_between_slots(plan_.graph.nodes[i], plan_.sharing);
      (second ? plan_.second : plan_.first).push_back(instruction_of(i));
      if (second) choose_way(plan_.second.back());
    }
    fuse_relus(plan_);
    find_lifetimes();
    return std::move(plan_);
  }

 private:
  [[nodiscard]] Instruction instruction_of(std::size_t i) const {
    const Node& node = plan_.graph.nodes[i];
    Instruction instruction;
    instruction.node = i;
    instruction.number = is_number_op(node.op);
    if (instruction.number) return instruction;
    instruction.overwrites =
        writes_in_place(node) && node.outputs.size() == 1 && argument_if<ValueId>(node, 0) != nullptr;
    instruction.as_exported =
        !instruction.overwrites && std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) {
          return id != kNoValue && plan_.written_view[static_cast<std::size_t>(id)];
        });
    instruction.rule = find_batching_rule(node.op);
    if (instruction.rule != nullptr && second_is_hyper(node)) instruction.per_slot = instruction.rule->per_slot;
    if (instruction.rule == nullptr && draws(node)) {
      fail_at(
          node,
          "this op draws random numbers in a way that cannot be counted per slot; wanted dropout, bernoulli, rand, "
          "randn, randint, randperm, uniform_, normal_ or exponential_; a draw of classes is the argmax of logits and "
          "Gumbel noise, -log(exponential_())");
    }
    if (reads_all_numbers(instruction.rule, node)) instruction.unbatched = instruction.rule->unbatched;
    if (instruction.unbatched == nullptr) instruction.alone.emplace(node, device_);
    return instruction;
  }

  // How the instruction runs for c slots.
  void choose_way(Instruction& instruction) const {
    const Node& node = plan_.graph.nodes[instruction.node];
    if (instruction.number || lowering_.chunk == 1) return;
    const auto own = [&](ValueId id) { return id != kNoValue && plan_.is_own(id); };
    instruction.own = std::any_of(node.outputs.begin(), node.outputs.end(), own);
    const std::vector<ValueId> inputs = inputs_of(node), written = written_by(node);
    const bool from_own = std::any_of(inputs.begin(), inputs.end(), own) ||
                          std::any_of(written.begin(), written.end(), own) || draws(node) || has_hyper(node);
    if (!from_own) {
      instruction.copied = instruction.own;
      if (!instruction.alone) instruction.alone.emplace(node, device_);
      return;
    }
    instruction.own = true;
    for (const ValueId id : node.outputs) {
      if (id == kNoValue || !plan_.graph.values[static_cast<std::size_t>(id)].number) continue;
      fail_at(node, "a number computed from a slot's own data cannot steer slots that run together");
    }
    if (instruction.per_slot != nullptr) return;
    const bool by_slot = has_hyper(node) && !reads_all_numbers(instruction.rule, node);
    if (instruction.rule != nullptr && !by_slot) {
      instruction.candidate = pick(*instruction.rule, node, lowering_);
      if (instruction.candidate != nullptr) {
        if (instruction.candidate->run == nullptr) instruction.batched.emplace(node, device_, true);
        return;
      }
      if (instruction.rule->candidates.empty()) {
        instruction.aligned = BoxedOp(node, device_).with_slot_dimension(instruction.rule->dims);
        return;
      }
    }
    // Stacking the slots' outputs would not give a view of the inputs.
    const bool viewed =
        makes_view(node) && written.empty() && std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) {
          return id != kNoValue && plan_.sharing.written[static_cast<std::size_t>(id)];
        });
    if (viewed && by_slot)
      fail_at(node, "a view that is written in place cannot have a parameter that differs by slot");
    instruction.batched.emplace(node, device_, by_slot);
  }

  void find_lifetimes() {
    std::vector<std::pair<std::vector<Instruction>*, std::size_t>> last(plan_.graph.values.size(), {nullptr, 0});
    std::vector<bool> made_first(plan_.graph.values.size(), false), read_second(plan_.graph.values.size(), false);
    for (const ValueId id : plan_.graph.inputs) made_first[static_cast<std::size_t>(id)] = true;
    for (auto* part : {&plan_.first, &plan_.second}) {
      for (std::size_t k = 0; k < part->size(); ++k) {
        const Node& node = plan_.graph.nodes[(*part)[k].node];
        for (const ValueId id : inputs_of(node)) {
          last[static_cast<std::size_t>(id)] = {part, k};
          if (part == &plan_.second) read_second[static_cast<std::size_t>(id)] = true;
        }
        for (const ValueId id : node.outputs) {
          if (id == kNoValue) continue;
          last[static_cast<std::size_t>(id)] = {part, k};
          if (part == &plan_.first) made_first[static_cast<std::size_t>(id)] = true;
        }
      }
    }
    for (const ValueId id : plan_.graph.outputs) {
      read_second[static_cast<std::size_t>(id)] = true;
      last[static_cast<std::size_t>(id)] = {nullptr, 0};
    }
    for (std::size_t id = 0; id < last.size(); ++id) {
      if (made_first[id] && read_second[id]) plan_.handed_over.push_back(static_cast<ValueId>(id));
      if (last[id].first != nullptr) (*last[id].first)[last[id].second].dead.push_back(static_cast<ValueId>(id));
    }
  }

  const Lowering& lowering_;
  const at::Device& device_;
  ProgramPlan plan_;
};

}  // namespace

ProgramPlan plan_program(SpecializedGraph reading, const std::vector<bool>& owned, const Lowering& lowering,
                         const at::Device& device) {
  return Planner(std::move(reading), owned, lowering, device).run();
}

}  // namespace hfta::fusion
