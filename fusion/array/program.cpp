#include "fusion/array/program.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"

namespace hfta::fusion {
namespace {

bool supports(const Candidate& candidate, const Node& node) {
  return candidate.supports == nullptr || candidate.supports(node);
}

const Candidate* pick(const Rule& rule, const Node& node, const Lowering& lowering) {
  const auto chosen = lowering.families.find(rule.family);
  const Candidate* first = nullptr;
  for (const Candidate& candidate : rule.candidates) {
    if (!supports(candidate, node)) continue;
    if (first == nullptr) first = &candidate;
    if (chosen != lowering.families.end() && chosen->second == candidate.name) return &candidate;
  }
  return first;
}

template <typename Visit>
void for_each_input(const Node& node, Visit visit) {
  for (const Arg& arg : node.args) {
    if (const auto* id = std::get_if<ValueId>(&arg)) visit(*id);
    if (const auto* ids = std::get_if<std::vector<ValueId>>(&arg)) std::for_each(ids->begin(), ids->end(), visit);
  }
}

// For each node, the values whose last reader it is. The output is never dead.
std::vector<std::vector<ValueId>> last_reads(const Graph& graph) {
  std::vector<int> last(graph.values.size(), -1);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    for_each_input(graph.nodes[i], [&](ValueId id) { last[static_cast<std::size_t>(id)] = static_cast<int>(i); });
  }
  last[static_cast<std::size_t>(graph.output)] = -1;
  std::vector<std::vector<ValueId>> dead(graph.nodes.size());
  for (std::size_t id = 0; id < last.size(); ++id) {
    if (last[id] >= 0) dead[static_cast<std::size_t>(last[id])].push_back(static_cast<ValueId>(id));
  }
  return dead;
}

}  // namespace

Program::Program(const Graph& graph, const Lowering& lowering) : graph_(graph), channels_last_(lowering.channels_last) {
  std::vector<std::vector<ValueId>> dead = last_reads(graph);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    Instruction instruction;
    instruction.node = i;
    instruction.rule = find_rule(node.op);
    if (instruction.rule == nullptr) {
      throw Error(ErrorKind::kConfig,
                  fmt::format("{}: {} ({}): this op cannot be fused yet", node.where, node.path, node.op));
    }
    instruction.dead = std::move(dead[i]);
    if (instruction.rule->solo == nullptr) instruction.alone = BoxedOp(node);
    instruction.candidate = pick(*instruction.rule, node, lowering);
    if (instruction.candidate == nullptr) instruction.wide = BoxedOp(node).with_slot_dimension(instruction.rule->dims);
    instructions_.push_back(std::move(instruction));
  }
}

at::Tensor Program::run(std::span<const at::Tensor> inputs, std::span<const at::Tensor> weights,
                        const RunContext& context) const {
  std::vector<at::Tensor> values(graph_.values.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool image = inputs[i].dim() == 4 && context.slots == 0;
    values[static_cast<std::size_t>(graph_.inputs[i])] =
        image && channels_last_ ? inputs[i].contiguous(at::MemoryFormat::ChannelsLast) : inputs[i];
  }
  for (std::size_t i = 0; i < weights.size(); ++i) {
    values[static_cast<std::size_t>(graph_.weights[i].value)] = weights[i];
  }
  for (const Instruction& instruction : instructions_) {
    const Node& node = graph_.nodes[instruction.node];
    const Call call(node, static_cast<int>(instruction.node), values, context);
    std::vector<at::Tensor> outputs;
    if (context.slots == 0) {
      outputs = instruction.alone ? instruction.alone->call(values, context.training) : instruction.rule->solo(call);
    } else {
      outputs = instruction.candidate != nullptr ? instruction.candidate->run(call)
                                                 : instruction.wide->call(values, context.training);
    }
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      values[static_cast<std::size_t>(node.outputs[o])] = std::move(outputs[o]);
    }
    for (const ValueId id : instruction.dead) values[static_cast<std::size_t>(id)].reset();
  }
  return values[static_cast<std::size_t>(graph_.output)];
}

std::vector<std::pair<std::string, std::string>> Program::choices() const {
  std::vector<std::pair<std::string, std::string>> out;
  for (const Instruction& instruction : instructions_) {
    if (instruction.candidate == nullptr || instruction.rule->candidates.size() < 2) continue;
    out.emplace_back(graph_.nodes[instruction.node].path, instruction.candidate->name);
  }
  return out;
}

std::vector<std::pair<std::string, std::vector<std::string>>> choosable_families(const Graph& graph) {
  std::vector<std::pair<std::string, std::vector<std::string>>> families;
  for (const Node& node : graph.nodes) {
    const Rule* rule = find_rule(node.op);
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

}  // namespace hfta::fusion
