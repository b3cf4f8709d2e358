#pragma once
/// Calling any ATen op by its name, with the graph's arguments.

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <span>
#include <vector>

#include "fusion/array/rule.hpp"

namespace hfta::fusion {

/// A node's op with its literals converted once; only tensors (and, in evaluation, mode flags) are filled in per call.
class BoxedOp {
 public:
  /// Throws Error{kConfig} if this LibTorch has no such op or an argument does not fit its schema.
  explicit BoxedOp(const Node& node);

  /// Calls it. `values` are indexed by ValueId. Mode flags (training of batch_norm, train of dropout) follow
  /// `training`.
  [[nodiscard]] std::vector<at::Tensor> call(std::span<const at::Tensor> values, bool training) const;

  /// The same with dimension arguments that do not count a leading slot dimension: non-negative ones move up by one.
  /// `dims` are the positions of those arguments.
  [[nodiscard]] BoxedOp with_slot_dimension(std::span<const int> dims) const;

 private:
  c10::OperatorHandle handle_;
  torch::jit::Stack literals_;
  std::vector<std::pair<std::size_t, ValueId>> tensors_;
  std::vector<std::pair<std::size_t, std::vector<ValueId>>> lists_;
  int mode_flag_ = -1;
};

/// Position of the argument that says "training" in the op's schema; -1 if it has none.
[[nodiscard]] int mode_flag_of(const std::string& op);

}  // namespace hfta::fusion
