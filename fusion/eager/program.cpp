#include "fusion/eager/program.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <variant>

#include "base/error.hpp"
#include "fusion/eager/autocast.hpp"
#include "fusion/eager/layout.hpp"
#include "fusion/eager/numbers.hpp"
#include "fusion/execution/torch_error.hpp"
#include "fusion/passes/randomness.hpp"
#include "fusion/passes/schema.hpp"

namespace hfta::fusion {
namespace {

bool supports(const Candidate& candidate, const Node& node) {
  return candidate.supports == nullptr || candidate.supports(node);
}

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

ValueEnv to_values(std::vector<at::Tensor> tensors) {
  ValueEnv flow;
  for (at::Tensor& tensor : tensors) flow.emplace_back(std::move(tensor));
  return flow;
}

// Whether the node has the form that BatchingRule::per_slot takes.
bool second_is_hyper(const Node& node) {
  return node.args.size() > 1 && std::holds_alternative<HyperRef>(node.args[1]) &&
         std::holds_alternative<ValueId>(node.args[0]);
}

void store(ValueEnv outputs, const Node& node, ValueEnv& values) {
  for (std::size_t o = 0; o < node.outputs.size() && o < outputs.size(); ++o) {
    if (node.outputs[o] != kNoValue) values[static_cast<std::size_t>(node.outputs[o])] = std::move(outputs[o]);
  }
}

}  // namespace

Program::Program(SpecializedGraph reading, const std::vector<bool>& owned, const Lowering& lowering,
                 const at::Device& device, Precision precision)
    : graph_(std::move(reading.graph)),
      index_(std::move(reading.index)),
      device_(device),
      precision_(precision),
      channels_last_(lowering.channels_last),
      owned_(owned),
      sharing_(sharing_of({graph_, index_}, owned)) {
  // Samples may be the same for all slots or each slot's own; a slot's bits must not depend on which. So whatever
  // comes from samples has a slot dimension in the second part.
  own_ = sharing_.slotwise;
  for (std::size_t id = 0; id < own_.size(); ++id) {
    own_[id] = own_[id] || (sharing_.from_data[id] && !sharing_.after_divergence[id]);
  }
  for (const Node& node : graph_.nodes) {  // numbers computed after slots diverge, and constants made from data
    for (const ValueId id : node.outputs) {
      if (id == kNoValue || is_number_op(node.op) || graph_.values[static_cast<std::size_t>(id)].number) continue;
      const std::vector<ValueId> inputs = inputs_of(node);
      const bool from_own = std::any_of(inputs.begin(), inputs.end(), [&](ValueId input) { return is_own(input); });
      if (sharing_.after_divergence[static_cast<std::size_t>(id)] && from_own)
        own_[static_cast<std::size_t>(id)] = true;
    }
  }
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    const std::vector<ValueId> inputs = inputs_of(graph_.nodes[i]);
    const std::vector<ValueId> written = written_by(graph_.nodes[i]);
    const auto after_divergence = [&](ValueId id) {
      return id != kNoValue && sharing_.after_divergence[static_cast<std::size_t>(id)];
    };
    const bool second = std::any_of(inputs.begin(), inputs.end(), after_divergence) ||
                        std::any_of(written.begin(), written.end(), after_divergence) ||
                        std::any_of(graph_.nodes[i].outputs.begin(), graph_.nodes[i].outputs.end(), after_divergence);
    (second ? second_ : first_).push_back(instruction_of(i, device));
    if (second) choose_way(second_.back(), lowering, device);
  }
  const std::vector<int> reads = readers();
  join_relus(reads);
  delay_relus(reads);
  find_lifetimes();
}

Program::Instruction Program::instruction_of(std::size_t i, const at::Device& device) const {
  const Node& node = graph_.nodes[i];
  Instruction instruction;
  instruction.node = i;
  instruction.number = is_number_op(node.op);
  if (instruction.number) return instruction;
  instruction.rule = find_batching_rule(node.op);
  if (instruction.rule != nullptr && second_is_hyper(node)) instruction.per_slot = instruction.rule->per_slot;
  if (instruction.rule == nullptr && draws(node)) {
    fail_at(node,
            "this op draws random numbers in a way that cannot be counted per slot; wanted dropout, bernoulli, rand, "
            "randn, uniform_, normal_ or exponential_");
  }
  if (instruction.rule == nullptr || instruction.rule->unbatched == nullptr) instruction.alone.emplace(node, device);
  return instruction;
}

// How the instruction runs for c slots.
void Program::choose_way(Instruction& instruction, const Lowering& lowering, const at::Device& device) const {
  const Node& node = graph_.nodes[instruction.node];
  if (instruction.number || lowering.chunk == 1) return;
  const auto own = [&](ValueId id) { return id != kNoValue && is_own(id); };
  instruction.own = std::any_of(node.outputs.begin(), node.outputs.end(), own);
  const std::vector<ValueId> inputs = inputs_of(node), written = written_by(node);
  const bool from_own = std::any_of(inputs.begin(), inputs.end(), own) ||
                        std::any_of(written.begin(), written.end(), own) || draws(node) || has_hyper(node);
  if (!from_own) {
    instruction.copied = instruction.own;
    if (!instruction.alone) instruction.alone.emplace(node, device);
    return;
  }
  instruction.own = true;
  for (const ValueId id : node.outputs) {
    if (id == kNoValue || !graph_.values[static_cast<std::size_t>(id)].number) continue;
    fail_at(node, "a number computed from a slot's own data cannot steer slots that run together");
  }
  if (instruction.per_slot != nullptr) return;
  const bool by_slot = has_hyper(node) && (instruction.rule == nullptr || !instruction.rule->reads_hypers);
  if (instruction.rule != nullptr && !by_slot) {
    instruction.candidate = pick(*instruction.rule, node, lowering);
    if (instruction.candidate != nullptr) {
      if (instruction.candidate->run == nullptr) instruction.batched.emplace(node, device, true);
      return;
    }
    if (instruction.rule->candidates.empty()) {
      instruction.aligned = BoxedOp(node, device).with_slot_dimension(instruction.rule->dims);
      return;
    }
  }
  // Stacking the slots' outputs would not give a view of the inputs.
  const bool viewed =
      makes_view(node) && written.empty() && std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) {
        return id != kNoValue && sharing_.written[static_cast<std::size_t>(id)];
      });
  if (viewed && by_slot) fail_at(node, "a view that is written in place cannot have a parameter that differs by slot");
  instruction.batched.emplace(node, device, by_slot);
}

std::vector<int> Program::readers() const {
  std::vector<int> reads(graph_.values.size(), 0);
  for (const Node& node : graph_.nodes) {
    for (const ValueId id : inputs_of(node)) ++reads[static_cast<std::size_t>(id)];
  }
  for (const ValueId id : graph_.outputs) ++reads[static_cast<std::size_t>(id)];
  return reads;
}

// A relu that alone reads the result of an op whose candidate can do both in one pass; a view may be between.
void Program::join_relus(const std::vector<int>& reads) {
  std::map<ValueId, Instruction*> made;
  for (Instruction& instruction : second_) {
    const Node& node = graph_.nodes[instruction.node];
    if (instruction.candidate != nullptr && instruction.candidate->relu) made[node.outputs.front()] = &instruction;
    const std::vector<ValueId> inputs = inputs_of(node);
    const auto before = inputs.empty() ? made.end() : made.find(inputs.front());
    if (before == made.end() || reads[static_cast<std::size_t>(inputs.front())] != 1) continue;
    if (node.op == "aten::view" || node.op == "aten::reshape") made[node.outputs.front()] = before->second;
    if (node.op != "aten::relu" && node.op != "aten::relu_") continue;
    if (graph_.nodes[before->second->node].no_gradient != node.no_gradient) continue;
    before->second->relu = instruction.passed = true;
  }
}

// The largest of relu(x) is relu of the largest x, and has its gradient: behind a max pool a relu has less to do. Not
// where x is written later, which the pool would see, nor where the pool's result is, which the relu keeps for
// backward.
void Program::delay_relus(const std::vector<int>& reads) {
  const auto written = [&](ValueId id) { return sharing_.written[static_cast<std::size_t>(id)]; };
  std::map<ValueId, Instruction*> relus;
  for (Instruction& instruction : second_) {
    const Node& node = graph_.nodes[instruction.node];
    if (node.op == "aten::relu" && !instruction.passed && instruction.own) relus[node.outputs.front()] = &instruction;
    if (instruction.candidate == nullptr || !instruction.candidate->late_relu) continue;
    const ValueId pooled = inputs_of(node).front();
    const auto before = relus.find(pooled);
    if (before == relus.end() || reads[static_cast<std::size_t>(pooled)] != 1) continue;
    const Node& relu = graph_.nodes[before->second->node];
    if (relu.no_gradient != node.no_gradient) continue;
    if (written(inputs_of(relu).front()) || written(node.outputs.front())) continue;
    before->second->passed = instruction.relu = true;
  }
}

void Program::find_lifetimes() {
  std::vector<std::pair<std::vector<Instruction>*, std::size_t>> last(graph_.values.size(), {nullptr, 0});
  std::vector<bool> made_first(graph_.values.size(), false), read_second(graph_.values.size(), false);
  for (const ValueId id : graph_.inputs) made_first[static_cast<std::size_t>(id)] = true;
  for (auto* part : {&first_, &second_}) {
    for (std::size_t k = 0; k < part->size(); ++k) {
      const Node& node = graph_.nodes[(*part)[k].node];
      for (const ValueId id : inputs_of(node)) {
        last[static_cast<std::size_t>(id)] = {part, k};
        if (part == &second_) read_second[static_cast<std::size_t>(id)] = true;
      }
      for (const ValueId id : node.outputs) {
        if (id == kNoValue) continue;
        last[static_cast<std::size_t>(id)] = {part, k};
        if (part == &first_) made_first[static_cast<std::size_t>(id)] = true;
      }
    }
  }
  for (const ValueId id : graph_.outputs) {
    read_second[static_cast<std::size_t>(id)] = true;
    last[static_cast<std::size_t>(id)] = {nullptr, 0};
  }
  for (std::size_t id = 0; id < last.size(); ++id) {
    if (made_first[id] && read_second[id]) handed_over_.push_back(static_cast<ValueId>(id));
    if (last[id].first != nullptr) (*last[id].first)[last[id].second].dead.push_back(static_cast<ValueId>(id));
  }
}

ValueEnv Program::share(std::span<const at::Tensor> inputs, std::span<const at::Tensor> weights) const {
  const at::NoGradGuard no_gradients;
  const Autocast lower(precision_, device_);
  ValueEnv values(graph_.values.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!owned_[i]) values[static_cast<std::size_t>(graph_.weights[i].value)] = weights[i];
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto id = static_cast<std::size_t>(graph_.inputs[i]);
    at::Tensor input = inputs[i];
    if (input.dim() == 4 && channels_last_) input = input.contiguous(at::MemoryFormat::ChannelsLast);
    // Samples belong to the caller, and other slots read them, too.
    values[id] = sharing_.written[id] && !sharing_.after_divergence[id] ? input.clone() : input;
  }
  const HostNumbers none;
  const RunContext alone{0, none, device_};
  for (const Instruction& instruction : first_) execute(instruction, values, alone);
  ValueEnv kept(graph_.values.size());
  for (const ValueId id : handed_over_) {
    kept[static_cast<std::size_t>(id)] = std::move(values[static_cast<std::size_t>(id)]);
  }
  return kept;
}

// A value of the first part in the form that the second part takes: with a slot dimension if it comes from samples.
ValueEnv Program::joined(std::span<const ValueEnv* const> shared, int slots) const {
  ValueEnv values = *shared.front();
  for (const ValueId id : handed_over_) {
    const auto at = static_cast<std::size_t>(id);
    if (!values[at].isTensor()) continue;
    if (slots > 0 && own_[at]) {
      const bool same =
          std::all_of(shared.begin(), shared.end(), [&](const ValueEnv* f) { return f == shared.front(); });
      if (same) {
        values[at] = with_slots(values[at].toTensor(), slots);
      } else {
        std::vector<at::Tensor> rows;
        for (const ValueEnv* flow : shared) rows.push_back((*flow)[at].toTensor());
        values[at] = at::stack(rows);
      }
    }
    if (sharing_.written[at] && sharing_.after_divergence[at]) values[at] = values[at].toTensor().clone();
  }
  return values;
}

std::vector<at::Tensor> Program::run(std::span<const ValueEnv* const> shared, std::span<const at::Tensor> weights,
                                     const RunContext& context) const {
  const Autocast lower(precision_, device_);
  ValueEnv values = joined(shared, context.slots);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    values[static_cast<std::size_t>(graph_.weights[i].value)] = weights[i];
  }
  for (const Instruction& instruction : second_) execute(instruction, values, context);
  std::vector<at::Tensor> results;
  for (const ValueId id : graph_.outputs) {
    at::Tensor result = values[static_cast<std::size_t>(id)].toTensor().resolve_neg();
    // Sums over a set begin in float32.
    if (precision_ == Precision::kBfloat16 && result.scalar_type() == at::kBFloat16) result = result.to(at::kFloat);
    results.push_back(context.slots > 0 && !is_own(id) ? with_slots(result, context.slots) : result);
  }
  return results;
}

void Program::execute(const Instruction& instruction, ValueEnv& values, const RunContext& context) const {
  const Node& node = graph_.nodes[instruction.node];
  try {
    const at::AutoGradMode gradients(at::GradMode::is_enabled() && !node.no_gradient);
    store(outputs_of(instruction, values, context), node, values);
  } catch (const c10::Error& error) {
    if (fault_of(error) != TorchFault::kCall) throw;
    fail_at(node, first_line(error));
  }
  for (const ValueId id : instruction.dead) values[static_cast<std::size_t>(id)] = c10::IValue();
}

ValueEnv Program::outputs_of(const Instruction& instruction, const ValueEnv& values, const RunContext& context) const {
  static const std::vector<bool> none;
  const Node& node = graph_.nodes[instruction.node];
  const bool wide = context.slots > 0;
  if (instruction.number) return {number_of(node, values, wide ? own_ : none)};
  if (wide && instruction.passed) return {values[static_cast<std::size_t>(inputs_of(node).front())]};
  const OpCall call(node, index_[instruction.node], values, own_, context, wide && instruction.relu);
  if (instruction.per_slot != nullptr) return to_values(instruction.per_slot(call));
  if (!wide || !instruction.own) {
    if (instruction.rule != nullptr && instruction.rule->unbatched != nullptr) {
      if (!wide) return to_values(instruction.rule->unbatched(call));
      return instruction.alone->call(values);
    }
    return instruction.alone->call(values, context.numbers.hypers_of(0));
  }
  if (instruction.copied) {
    ValueEnv outputs = instruction.alone->call(values);
    for (c10::IValue& output : outputs) {
      if (output.isTensor()) output = with_slots(output.toTensor(), context.slots).clone();
    }
    return outputs;
  }
  if (instruction.batched) return instruction.batched->call(values, own_, context);
  if (instruction.aligned) return aligned(instruction, values, context.slots);
  return to_values(instruction.candidate->run(call));
}

// [c, N, F] with [c, F]: broadcasting aligns dimensions from the right, so the second needs ones after its slots.
ValueEnv Program::aligned(const Instruction& instruction, const ValueEnv& values, int slots) const {
  std::int64_t rank = 0;
  for (const ValueId id : inputs_of(graph_.nodes[instruction.node])) {
    const c10::IValue& value = values[static_cast<std::size_t>(id)];
    if (value.isTensor()) rank = std::max(rank, value.toTensor().dim() - (is_own(id) ? 1 : 0));
  }
  const bool counts_dimensions = !instruction.rule->dims.empty();
  return instruction.aligned->call(values, {}, [&](ValueId id, const at::Tensor& t) {
    if (!is_own(id)) return counts_dimensions ? with_slots(t, slots) : t;
    if (t.dim() - 1 == rank || counts_dimensions) return t;
    std::vector<std::int64_t> sizes = t.sizes().vec();
    sizes.insert(sizes.begin() + 1, static_cast<std::size_t>(rank - (t.dim() - 1)), 1);
    return t.reshape(sizes);
  });
}

std::string Program::why_not_replayed() const {
  for (const auto* part : {&first_, &second_}) {
    for (const Instruction& instruction : *part) {
      const Node& node = graph_.nodes[instruction.node];
      const BatchingRule* rule = instruction.rule;
      const bool by_rule =
          instruction.per_slot != nullptr ||
          (rule != nullptr && rule->reads_hypers &&
           (instruction.candidate == nullptr ? rule->unbatched != nullptr : instruction.candidate->run != nullptr));
      if (has_hyper(node) && !by_rule) return fmt::format("{} takes a searched number from the host", node.op);
      if (instruction.number) continue;
      for (const ValueId id : node.outputs) {
        if (id != kNoValue && graph_.values[static_cast<std::size_t>(id)].number) {
          return fmt::format("{} gives the host a number of the data", node.op);
        }
      }
    }
  }
  return "";
}

bool Program::shares_layers() const {
  return std::any_of(first_.begin(), first_.end(), [&](const Instruction& instruction) {
    const Node& node = graph_.nodes[instruction.node];
    bool data = false, weight = false;
    for (const ValueId id : inputs_of(node)) {
      data = data || sharing_.from_data[static_cast<std::size_t>(id)];
      for (const Weight& w : graph_.weights) {
        weight = weight || (w.value == id && is_floating(w.dtype) && !w.shape.empty());
      }
    }
    return data && weight;
  });
}

std::vector<std::pair<std::string, std::string>> Program::choices() const {
  std::vector<std::pair<std::string, std::string>> out;
  std::map<std::string, std::string> without_rule;
  for (const Instruction& instruction : second_) {
    const Node& node = graph_.nodes[instruction.node];
    if (instruction.batched && instruction.candidate == nullptr) without_rule[node.op] = instruction.batched->way();
    if (instruction.candidate == nullptr || instruction.rule->candidates.size() < 2) continue;
    out.emplace_back(node.path, instruction.candidate->name);
  }
  out.insert(out.end(), without_rule.begin(), without_rule.end());
  return out;
}

std::vector<std::pair<std::string, std::vector<std::string>>> choosable_families(const Graph& graph) {
  std::vector<std::pair<std::string, std::vector<std::string>>> families;
  for (const Node& node : with_complete_arguments(graph).nodes) {
    const BatchingRule* rule = find_batching_rule(node.op);
    if (rule == nullptr || rule->candidates.size() < 2) continue;
    std::vector<std::string> names;
    for (const Candidate& candidate : rule->candidates) {
      if (supports(candidate, node)) names.push_back(candidate.name);
    }
    const auto known = std::find_if(families.begin(), families.end(),
                                    [&](const auto& family) { return family.first == rule->family; });
    if (known == families.end()) {
      families.emplace_back(rule->family, std::move(names));
    } else {
      std::erase_if(known->second, [&](const std::string& name) {
        return std::find(names.begin(), names.end(), name) == names.end();
      });
    }
  }
  std::erase_if(families, [](const auto& family) { return family.second.size() < 2; });
  return families;
}

std::vector<std::pair<std::string, std::string>> ops_without_rule(const Graph& graph) {
  const SpecializedGraph reading = specialized(with_complete_arguments(graph), Purpose::kTraining);
  const Sharing sharing = sharing_of(reading, owned_weights(reading));
  std::vector<std::pair<std::string, std::string>> out;
  for (const Node& node : reading.graph.nodes) {
    const bool own = std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) {
      return id != kNoValue && sharing.slotwise[static_cast<std::size_t>(id)];
    });
    const bool listed = std::any_of(out.begin(), out.end(), [&](const auto& entry) { return entry.first == node.op; });
    if (own && !listed && find_batching_rule(node.op) == nullptr) out.emplace_back(node.op, node.where);
  }
  return out;
}

}  // namespace hfta::fusion
