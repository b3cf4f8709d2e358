#pragma once
/// The plan of a program: which calls run in which part, and how each does. Program runs it.

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "fusion/eager/batched.hpp"
#include "fusion/eager/batching_rule.hpp"
#include "fusion/eager/boxed.hpp"
#include "fusion/lowering.hpp"
#include "fusion/passes/sharing.hpp"
#include "fusion/passes/specialize.hpp"

namespace hfta::fusion {

/// A call, and how it runs.
struct Instruction {
  std::size_t node = 0;
  bool number = false;
  bool own = false;     ///< Its outputs differ between slots.
  bool copied = false;  ///< Computed once for all slots, but written later: each slot gets a copy.
  bool relu = false;    ///< Does the relu beside it, too, where slots run together.
  bool passed = false;  ///< It is a relu that another instruction does.
  /// Its outputs have to lie as in PyTorch (Value::order): a view of them is written in place, and what is a view and
  /// what is a copy (reshape, contiguous) follows from how they lie.
  bool as_exported = false;
  bool overwrites = false;  ///< It writes its first argument in place, which is its only output.
  const BatchingRule* rule = nullptr;
  const Candidate* candidate = nullptr;
  std::vector<at::Tensor> (*per_slot)(const OpCall& call) = nullptr;   ///< BatchingRule::per_slot, if it has to.
  std::vector<at::Tensor> (*unbatched)(const OpCall& call) = nullptr;  ///< BatchingRule::unbatched, if it can.
  std::optional<BoxedOp> alone, aligned;
  std::optional<BatchedOp> batched;
  std::vector<ValueId> dead;  ///< Values that nothing reads after this instruction.
};

/// The calls of a graph in two parts, each in order: those that are the same for all slots, and the rest.
struct ProgramPlan {
  Graph graph;
  std::vector<int> index;
  std::vector<bool> owned;  ///< By weight: whether slots have their own.
  Sharing sharing;
  std::vector<bool> own;           ///< By value: has a slot dimension where the second part runs wide.
  std::vector<bool> written_view;  ///< By value: it shares memory that has views and is written in place.
  std::vector<Instruction> first, second;
  std::vector<ValueId> handed_over;  ///< Values of the first part that the second reads.

  [[nodiscard]] bool is_own(ValueId id) const { return own[static_cast<std::size_t>(id)]; }
};

/// Plans a reading for lowering.chunk slots. `owned`: by weight, whether slots have their own. Throws Error{kConfig}
/// naming the op and where it comes from if it cannot be run so.
[[nodiscard]] ProgramPlan plan_program(SpecializedGraph reading, const std::vector<bool>& owned,
                                       const Lowering& lowering, const at::Device& device);

}  // namespace hfta::fusion
