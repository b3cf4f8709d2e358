#include "fusion/passes/passes.hpp"
#include "fusion/passes/schema.hpp"

namespace hfta::fusion {
namespace {

bool keeps_no_statistics(const Node& node, const OpTraits& op) {
  const Arg* mean = find_argument(node, op.statistics.mean);
  return mean != nullptr && std::holds_alternative<std::monostate>(*mean);
}

void turn_off(Node& node) {
  const OpTraits& op = traits_of(node);
  Arg* const training = find_argument(node, op.training);
  Arg* const rate = find_argument(node, op.rate);
  if (op.evaluation == Evaluation::kFlagOff && training != nullptr && !keeps_no_statistics(node, op)) *training = false;
  if (op.evaluation == Evaluation::kRateZero && rate != nullptr) *rate = 0.0;
}

}  // namespace

SpecializedGraph with_modes_off(SpecializedGraph reading) {
  for (Node& node : reading.graph.nodes) {
    if (!is_number_op(node.op)) turn_off(node);
  }
  return reading;
}

}  // namespace hfta::fusion
