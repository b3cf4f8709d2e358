#pragma once
/// A graph made ready to run: ops looked up, literals converted, candidates picked, lifetimes known.

#include <ATen/core/Tensor.h>

#include <optional>
#include <span>
#include <vector>

#include "fusion/array/boxed.hpp"
#include "fusion/array/rule.hpp"
#include "fusion/graph.hpp"
#include "fusion/lowering.hpp"

namespace hfta::fusion {

/// Immutable; several threads may run it at once.
class Program {
 public:
  /// Throws Error{kConfig} naming the op and where it comes from if there is no rule for it.
  Program(const Graph& graph, const Lowering& lowering);

  /// One forward pass. `inputs` and `weights` in the graph's order; slotwise ones have a leading [c] if context.slots
  /// is not 0, and inputs then too (a shared batch: an expanded view). Records autograd if it is enabled.
  [[nodiscard]] at::Tensor run(std::span<const at::Tensor> inputs, std::span<const at::Tensor> weights,
                               const RunContext& context) const;

  /// Candidate names this program uses, by node path.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> choices() const;

 private:
  struct Instruction {
    std::size_t node = 0;
    const Rule* rule = nullptr;
    const Candidate* candidate = nullptr;  ///< nullptr: `wide`
    std::optional<BoxedOp> alone, wide;
    std::vector<ValueId> dead;  ///< Values nobody reads after this instruction.
  };

  Graph graph_;
  bool channels_last_;
  std::vector<Instruction> instructions_;
};

/// Families with more than one candidate that nodes of this graph can choose from, with the candidates that every node
/// of the family supports.
[[nodiscard]] std::vector<std::pair<std::string, std::vector<std::string>>> choosable_families(const Graph& graph);

}  // namespace hfta::fusion
