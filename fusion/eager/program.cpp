#include "fusion/eager/program.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "fusion/eager/autocast.hpp"
#include "fusion/eager/layout.hpp"
#include "fusion/eager/numbers.hpp"
#include "fusion/execution/torch_error.hpp"
#include "fusion/passes/randomness.hpp"
#include "fusion/passes/schema.hpp"

namespace hfta::fusion {
namespace {

ValueEnv to_values(std::vector<at::Tensor> tensors) {
  ValueEnv flow;
  for (at::Tensor& tensor : tensors) flow.emplace_back(std::move(tensor));
  return flow;
}

void store(ValueEnv outputs, const Node& node, ValueEnv& values) {
  for (std::size_t o = 0; o < node.outputs.size() && o < outputs.size(); ++o) {
    if (node.outputs[o] != kNoValue) values[static_cast<std::size_t>(node.outputs[o])] = std::move(outputs[o]);
  }
}

}  // namespace

Program::Program(SpecializedGraph reading, const std::vector<bool>& owned, const Lowering& lowering,
                 const at::Device& device, Precision precision)
    : plan_(plan_program(std::move(reading), owned, lowering, device)),
      device_(device),
      precision_(precision),
      channels_last_(lowering.channels_last) {}

ValueEnv Program::share(std::span<const at::Tensor> inputs, std::span<const at::Tensor> weights) const {
  const at::NoGradGuard no_gradients;
  const Autocast lower(precision_, device_);
  ValueEnv values(plan_.graph.values.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!plan_.owned[i]) values[static_cast<std::size_t>(plan_.graph.weights[i].value)] = weights[i];
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto id = static_cast<std::size_t>(plan_.graph.inputs[i]);
    at::Tensor input = inputs[i];
    if (input.dim() == 4 && channels_last_ && !plan_.written_view[id])
      input = input.contiguous(at::MemoryFormat::ChannelsLast);
    // Samples belong to the caller, and other slots read them, too.
    values[id] = plan_.sharing.written[id] && !plan_.sharing.after_divergence[id] ? input.clone() : input;
  }
  const HostNumbers none;
  const RunContext alone{0, none, device_};
  for (const Instruction& instruction : plan_.first) execute(instruction, values, alone);
  ValueEnv kept(plan_.graph.values.size());
  for (const ValueId id : plan_.handed_over) {
    kept[static_cast<std::size_t>(id)] = std::move(values[static_cast<std::size_t>(id)]);
  }
  return kept;
}

// A value of the first part in the form that the second part takes: with a slot dimension if it comes from samples.
ValueEnv Program::joined(std::span<const ValueEnv* const> shared, int slots) const {
  ValueEnv values = *shared.front();
  for (const ValueId id : plan_.handed_over) {
    const auto at = static_cast<std::size_t>(id);
    if (!values[at].isTensor()) continue;
    if (slots > 0 && plan_.own[at]) {
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
    if (plan_.sharing.written[at] && plan_.sharing.after_divergence[at]) values[at] = values[at].toTensor().clone();
  }
  return values;
}

std::vector<at::Tensor> Program::run(std::span<const ValueEnv* const> shared, std::span<const at::Tensor> weights,
                                     const RunContext& context) const {
  const Autocast lower(precision_, device_);
  ValueEnv values = joined(shared, context.slots);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    values[static_cast<std::size_t>(plan_.graph.weights[i].value)] = weights[i];
  }
  for (const Instruction& instruction : plan_.second) execute(instruction, values, context);
  std::vector<at::Tensor> results;
  for (const ValueId id : plan_.graph.outputs) {
    at::Tensor result = values[static_cast<std::size_t>(id)].toTensor().resolve_neg();
    // Sums over a set begin in float32.
    if (precision_ == Precision::kBfloat16 && result.scalar_type() == at::kBFloat16) result = result.to(at::kFloat);
    results.push_back(context.slots > 0 && !plan_.is_own(id) ? with_slots(result, context.slots) : result);
  }
  return results;
}

void Program::execute(const Instruction& instruction, ValueEnv& values, const RunContext& context) const {
  const Node& node = plan_.graph.nodes[instruction.node];
  try {
    const at::AutoGradMode gradients(at::GradMode::is_enabled() && !node.no_gradient);
    const bool wide = context.slots > 0;
    ValueEnv outputs = outputs_of(instruction, values, context);
    if (instruction.as_exported && (channels_last_ || wide)) lay_out(outputs, node, values);
    // LibTorch's batching gives a view of what was written, which has no history under no_grad.
    if (instruction.overwrites && instruction.batched && wide) {
      outputs = {values[static_cast<std::size_t>(argument_as<ValueId>(node, 0))]};
    }
    store(std::move(outputs), node, values);
  } catch (const c10::Error& error) {
    if (fault_of(error) != TorchFault::kCall) throw;
    fail_at(node, first_line(error));
  }
  for (const ValueId id : instruction.dead) values[static_cast<std::size_t>(id)] = c10::IValue();
}

// Tensors of their own as PyTorch has them in memory; views lie as what they view.
void Program::lay_out(ValueEnv& outputs, const Node& node, const ValueEnv& values) const {
  const std::vector<ValueId> inputs = inputs_of(node);
  for (std::size_t o = 0; o < outputs.size() && o < node.outputs.size(); ++o) {
    if (node.outputs[o] == kNoValue || !outputs[o].isTensor()) continue;
    const at::Tensor output = outputs[o].toTensor();
    const bool is_view = std::any_of(inputs.begin(), inputs.end(), [&](ValueId id) {
      const c10::IValue& input = values[static_cast<std::size_t>(id)];
      return input.isTensor() && output.is_alias_of(input.toTensor());
    });
    if (!is_view) outputs[o] = in_order(output, plan_.graph.values[static_cast<std::size_t>(node.outputs[o])].order);
  }
}

ValueEnv Program::outputs_of(const Instruction& instruction, const ValueEnv& values, const RunContext& context) const {
  static const std::vector<bool> none;
  const Node& node = plan_.graph.nodes[instruction.node];
  const bool wide = context.slots > 0;
  if (instruction.number) return {number_of(node, values, wide ? plan_.own : none)};
  if (wide && instruction.passed) return {values[static_cast<std::size_t>(inputs_of(node).front())]};
  const OpCall call(node, plan_.index[instruction.node], values, plan_.own, context, wide && instruction.relu);
  if (instruction.per_slot != nullptr) return to_values(instruction.per_slot(call));
  if (!wide || !instruction.own) {
    if (!wide && instruction.unbatched != nullptr) return to_values(instruction.unbatched(call));
    return instruction.alone->call(values, context.numbers.hypers_of(0));
  }
  if (instruction.copied) {
    ValueEnv outputs = instruction.alone->call(values);
    for (c10::IValue& output : outputs) {
      if (output.isTensor()) output = with_slots(output.toTensor(), context.slots).clone();
    }
    return outputs;
  }
  if (instruction.batched) return instruction.batched->call(values, plan_.own, context);
  if (instruction.aligned) return aligned(instruction, values, context.slots);
  return to_values(instruction.candidate->run(call));
}

// [c, N, F] with [c, F]: broadcasting aligns dimensions from the right, so the second needs ones after its slots.
ValueEnv Program::aligned(const Instruction& instruction, const ValueEnv& values, int slots) const {
  std::int64_t rank = 0;
  for (const ValueId id : inputs_of(plan_.graph.nodes[instruction.node])) {
    const c10::IValue& value = values[static_cast<std::size_t>(id)];
    if (value.isTensor()) rank = std::max(rank, value.toTensor().dim() - (plan_.is_own(id) ? 1 : 0));
  }
  const bool counts_dimensions = !instruction.rule->dims.empty();
  return instruction.aligned->call(values, {}, [&](ValueId id, const at::Tensor& t) {
    if (!plan_.is_own(id)) return counts_dimensions ? with_slots(t, slots) : t;
    if (t.dim() - 1 == rank || counts_dimensions) return t;
    std::vector<std::int64_t> sizes = t.sizes().vec();
    sizes.insert(sizes.begin() + 1, static_cast<std::size_t>(rank - (t.dim() - 1)), 1);
    return t.reshape(sizes);
  });
}

std::string Program::why_not_replayed() const {
  for (const auto* part : {&plan_.first, &plan_.second}) {
    for (const Instruction& instruction : *part) {
      const Node& node = plan_.graph.nodes[instruction.node];
      const BatchingRule* rule = instruction.rule;
      const bool by_rule =
          instruction.per_slot != nullptr ||
          (rule != nullptr && rule->reads_hypers &&
           (instruction.candidate == nullptr ? rule->unbatched != nullptr : instruction.candidate->run != nullptr));
      if (has_hyper(node) && !by_rule) return fmt::format("{} takes a searched number from the host", node.op);
      if (instruction.number) continue;
      for (const ValueId id : node.outputs) {
        if (id != kNoValue && plan_.graph.values[static_cast<std::size_t>(id)].number) {
          return fmt::format("{} gives the host a number of the data", node.op);
        }
      }
    }
  }
  return "";
}

bool Program::shares_layers() const {
  return std::any_of(plan_.first.begin(), plan_.first.end(), [&](const Instruction& instruction) {
    const Node& node = plan_.graph.nodes[instruction.node];
    bool data = false, weight = false;
    for (const ValueId id : inputs_of(node)) {
      data = data || plan_.sharing.from_data[static_cast<std::size_t>(id)];
      for (const Weight& w : plan_.graph.weights) {
        weight = weight || (w.value == id && is_floating(w.dtype) && !w.shape.empty());
      }
    }
    return data && weight;
  });
}

std::vector<std::pair<std::string, std::string>> Program::choices() const {
  std::vector<std::pair<std::string, std::string>> out;
  std::map<std::string, std::string> without_rule;
  for (const Instruction& instruction : plan_.second) {
    const Node& node = plan_.graph.nodes[instruction.node];
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
