#pragma once
/// A specialized graph made ready to run: ops looked up, literals converted, candidates chosen, lifetimes known.
///
/// It runs in two parts: the calls that are the same for all slots, once per set of samples; and the rest, for one slot
/// or for c. Only these two parts run in the precision that the program was made for.

#include <ATen/core/Tensor.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fusion/eager/batching_rule.hpp"
#include "fusion/eager/boxed.hpp"
#include "fusion/eager/program_plan.hpp"
#include "fusion/lowering.hpp"
#include "fusion/passes/specialize.hpp"
#include "fusion/recipe.hpp"

namespace hfta::fusion {

/// Immutable; several threads may run it at once.
class Program {
 public:
  /// `owned`: by weight, whether slots have their own. Throws Error{kConfig} naming the op and where it comes from if
  /// it cannot be run c = lowering.chunk slots wide.
  Program(SpecializedGraph reading, const std::vector<bool>& owned, const Lowering& lowering, const at::Device& device,
          Precision precision = Precision::kFloat32);

  /// Runs the part that slots share, without gradients. `weights` in the graph's order, of which it reads those
  /// that slots share; `inputs` in the graph's order. Only values that the other part reads are kept.
  [[nodiscard]] ValueEnv share(std::span<const at::Tensor> inputs, std::span<const at::Tensor> weights) const;

  /// Runs the other part. `shared`: the results of share(); one for all slots, or one per slot. `weights` in the
  /// graph's order, owned ones with a leading [c] if context.slots is not 0. Gives Graph::outputs: they have a leading
  /// [c] then, too, and are float32 where the precision would have left them in bfloat16. Records autograd if enabled.
  [[nodiscard]] std::vector<at::Tensor> run(std::span<const ValueEnv* const> shared,
                                            std::span<const at::Tensor> weights, const RunContext& context) const;

  /// Why runs whose numbers lie on the device cannot be captured (fusion/step_graph.hpp): the op
  /// that takes a number from the host that differs between trials, or gives the host one of the data. "" if they
  /// can.
  [[nodiscard]] std::string why_not_replayed() const;
  /// Whether share() runs layers, and does not only rearrange samples.
  [[nodiscard]] bool shares_layers() const;
  /// Candidate names this program uses, by node path; ops without a rule by their own name.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> choices() const;

 private:
  void execute(const Instruction& instruction, ValueEnv& values, const RunContext& context) const;
  void lay_out(ValueEnv& outputs, const Node& node, const ValueEnv& values) const;
  [[nodiscard]] ValueEnv outputs_of(const Instruction& instruction, const ValueEnv& values,
                                    const RunContext& context) const;
  [[nodiscard]] ValueEnv aligned(const Instruction& instruction, const ValueEnv& values, int slots) const;
  [[nodiscard]] ValueEnv joined(std::span<const ValueEnv* const> shared, int slots) const;

  ProgramPlan plan_;
  at::Device device_;
  Precision precision_;
  bool channels_last_;
};

/// Families with more than one candidate that nodes of this graph can choose from, with the candidates that every
/// node of the family supports.
[[nodiscard]] std::vector<std::pair<std::string, std::vector<std::string>>> choosable_families(const Graph& graph);

/// Ops of slots' own values that no rule is for, which run through LibTorch's batching where slots run together: name
/// and the first place in the model's source. Throws Error{kConfig} for ops that LibTorch does not have.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> ops_without_rule(const Graph& graph);

}  // namespace hfta::fusion
