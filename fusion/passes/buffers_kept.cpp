#include "fusion/passes/calls.hpp"
#include "fusion/passes/passes.hpp"
#include "fusion/passes/schema.hpp"

namespace hfta::fusion {

SpecializedGraph with_buffers_kept(SpecializedGraph reading) {
  MemorySets weights(reading.graph);
  for (const Weight& weight : reading.graph.weights) weights.mark(weight.value);
  Substitution out(std::move(reading));
  for (std::size_t i = 0; i < out.count(); ++i) {
    Node node = out.take(i);
    if (writes_in_place(node) && weights.any(written_by(node))) {
      out.stand_for(node, argument_at(node, 0));
    } else {
      out.add(std::move(node), i);
    }
  }
  return std::move(out).result();
}

}  // namespace hfta::fusion
