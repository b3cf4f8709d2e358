#include "fusion/eager/fused_relus.hpp"

#include <map>
#include <vector>

#include "fusion/graph/arguments.hpp"
#include "fusion/graph/uses.hpp"

namespace hfta::fusion {
namespace {

// How many calls and outputs read each value.
std::vector<int> readers_of(const ProgramPlan& plan) {
  std::vector<int> reads(plan.graph.values.size(), 0);
  for (const Node& node : plan.graph.nodes) {
    for (const ValueId id : inputs_of(node)) ++reads[static_cast<std::size_t>(id)];
  }
  for (const ValueId id : plan.graph.outputs) ++reads[static_cast<std::size_t>(id)];
  return reads;
}

// A relu that alone reads the result of an op whose candidate can do both in one pass; a view may be between.
void join_relus(ProgramPlan& plan, const std::vector<int>& reads) {
  std::map<ValueId, Instruction*> made;
  for (Instruction& instruction : plan.second) {
    const Node& node = plan.graph.nodes[instruction.node];
    if (instruction.candidate != nullptr && instruction.candidate->relu) made[first_output(node)] = &instruction;
    const std::vector<ValueId> inputs = inputs_of(node);
    const auto before = inputs.empty() ? made.end() : made.find(inputs.front());
    if (before == made.end() || reads[static_cast<std::size_t>(inputs.front())] != 1) continue;
    if (node.op == "aten::view" || node.op == "aten::reshape") made[first_output(node)] = before->second;
    if (node.op != "aten::relu" && node.op != "aten::relu_") continue;
    if (plan.graph.nodes[before->second->node].no_gradient != node.no_gradient) continue;
    before->second->relu = instruction.passed = true;
  }
}

// The largest of relu(x) is relu of the largest x, and has its gradient: behind a max pool a relu has less to do. Not
// where x is written later, which the pool would see, nor where the pool's result is, which the relu keeps for
// backward.
void delay_relus(ProgramPlan& plan, const std::vector<int>& reads) {
  const auto written = [&](ValueId id) { return plan.sharing.written[static_cast<std::size_t>(id)]; };
  std::map<ValueId, Instruction*> relus;
  for (Instruction& instruction : plan.second) {
    const Node& node = plan.graph.nodes[instruction.node];
    if (node.op == "aten::relu" && !instruction.passed && instruction.own) relus[first_output(node)] = &instruction;
    if (instruction.candidate == nullptr || !instruction.candidate->late_relu) continue;
    const std::vector<ValueId> inputs = inputs_of(node);
    if (inputs.empty() || first_output(node) == kNoValue) continue;
    const ValueId pooled = inputs.front();
    const auto before = relus.find(pooled);
    if (before == relus.end() || reads[static_cast<std::size_t>(pooled)] != 1) continue;
    const Node& relu = plan.graph.nodes[before->second->node];
    if (relu.no_gradient != node.no_gradient) continue;
    if (written(inputs_of(relu).front()) || written(first_output(node))) continue;
    before->second->passed = instruction.relu = true;
  }
}

}  // namespace

void fuse_relus(ProgramPlan& plan) {
  const std::vector<int> reads = readers_of(plan);
  join_relus(plan, reads);
  delay_relus(plan, reads);
}

}  // namespace hfta::fusion
