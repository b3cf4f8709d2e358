#pragma once
/// How one op of the graph runs for c slots at once.
///
/// A slotwise value is logically [c, N, ...]; its strides are free, so that a rule may keep the layout that its kernel
/// likes (a grouped convolution's [N, c*C, H, W] is such a value with slots inside) and the next rule takes it as it
/// is.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fusion/eager/boxed.hpp"
#include "fusion/eager/run_numbers.hpp"
#include "fusion/graph.hpp"
#include "fusion/graph/arguments.hpp"

namespace hfta::fusion {

/// One run of a graph for a chunk of slots.
struct RunContext {
  int slots = 0;              ///< c; 0: one slot, values without a slot dimension.
  const RunNumbers& numbers;  ///< Numbers of max(1, slots) slots.
  at::Device device = at::kCPU;

  /// max(1, slots)
  [[nodiscard]] std::size_t members() const { return static_cast<std::size_t>(slots > 0 ? slots : 1); }
};

/// A node with its arguments at hand; they are complete and stand as the op's schema has them. All that read argument i
/// throw ArgumentError if the call has fewer arguments, and if it is of none of the kinds that they read.
class OpCall {
 public:
  /// `slotwise`: by ValueId, whether the value has a slot dimension where slots() is not 0.
  OpCall(const Node& node, int index, std::span<const c10::IValue> values, const std::vector<bool>& slotwise,
         const RunContext& context, bool relu = false)
      : node_(node), index_(index), values_(values), slotwise_(slotwise), context_(context), relu_(relu) {}

  [[nodiscard]] const RunContext& context() const { return context_; }
  [[nodiscard]] int slots() const { return context_.slots; }
  /// Whether the result is wanted behind a relu; only where Candidate::relu or Candidate::late_relu.
  [[nodiscard]] bool relu() const { return relu_; }
  /// Position of the node in its graph: part of the key of its randomness.
  [[nodiscard]] int index() const { return index_; }
  /// The value of argument i, with the slot dimension if there are slots (an expanded view where slots share it);
  /// undefined if it is None.
  [[nodiscard]] at::Tensor tensor(std::size_t i) const;
  [[nodiscard]] std::vector<at::Tensor> tensors(std::size_t i) const;
  /// Whether slots share argument i: its tensor() is the same for all.
  [[nodiscard]] bool shared(std::size_t i) const;
  /// Argument i without a slot dimension; only if shared(i).
  [[nodiscard]] at::Tensor shared_tensor(std::size_t i) const;
  [[nodiscard]] bool is_none(std::size_t i) const { return std::holds_alternative<std::monostate>(arg(i)); }
  /// Whether argument i is a per-slot hyperparameter.
  [[nodiscard]] bool is_hyper(std::size_t i) const { return std::holds_alternative<HyperRef>(arg(i)); }
  [[nodiscard]] std::vector<std::int64_t> ints(std::size_t i) const;
  [[nodiscard]] std::int64_t integer(std::size_t i) const;
  [[nodiscard]] double number(std::size_t i) const;
  [[nodiscard]] bool flag(std::size_t i) const { return argument_as<bool>(node_, i); }
  [[nodiscard]] std::optional<std::string_view> word(std::size_t i) const;
  [[nodiscard]] std::optional<at::ScalarType> dtype(std::size_t i) const;
  /// Argument i of every slot, whether it is one literal for all or a per-slot hyperparameter.
  [[nodiscard]] SlotNumbers per_slot(std::size_t i) const;

 private:
  [[nodiscard]] const Arg& arg(std::size_t i) const { return argument_at(node_, i); }
  [[nodiscard]] at::Tensor with_slots(ValueId id) const;

  const Node& node_;
  int index_;
  std::span<const c10::IValue> values_;
  const std::vector<bool>& slotwise_;
  const RunContext& context_;
  bool relu_;
};

/// One way to run an op c slots wide. Returns the op's outputs.
struct Candidate {
  std::string name;
  std::vector<at::Tensor> (*run)(const OpCall& call);  ///< nullptr: the op itself, slot by slot.
  bool (*supports)(const Node& node);                  ///< nullptr: every node.
  bool relu = false;       ///< run() does the relu, too, that alone reads the op's result (OpCall::relu).
  bool late_relu = false;  ///< run() does, behind the op, the relu in front of it that it alone reads (OpCall::relu).
};

/// Whether the candidate is for the node.
[[nodiscard]] inline bool supports(const Candidate& candidate, const Node& node) {
  return candidate.supports == nullptr || candidate.supports(node);
}

/// The way that calls the op itself, slot by slot.
[[nodiscard]] inline Candidate by_slot() { return {"per_slot", nullptr, nullptr}; }

/// All ways to run an op c slots wide.
struct BatchingRule {
  std::string op;
  std::string family;  ///< Ops of one family share a choice: "conv", "linear", ...
  /// The first that supports a node is taken where nothing was measured. Empty: the op itself runs on [c, N, ...], its
  /// `dims` moved by one; where it has none, lower ranks are filled up with ones behind the slots.
  std::vector<Candidate> candidates;
  std::vector<int> dims = {};  ///< Positions of arguments that count dimensions.
  /// Runs the op for one slot; nullptr: the op itself, called as it is.
  std::vector<at::Tensor> (*unbatched)(const OpCall& call) = nullptr;
  /// Runs a call that has a number of each slot's own, also for one slot; nullptr: like any call, see reads_hypers.
  std::vector<at::Tensor> (*per_slot)(const OpCall& call) = nullptr;
  /// Candidates read hyperparameters with OpCall::per_slot; others get a loop over slots where there is one.
  bool reads_hypers = false;
};

/// Every rule, one table.
[[nodiscard]] const std::vector<BatchingRule>& batching_rules();
/// The op's rule; nullptr if it has none.
[[nodiscard]] const BatchingRule* find_batching_rule(const std::string& op);

}  // namespace hfta::fusion
