#pragma once
/// Calling any ATen op by its name, with the graph's arguments.

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <functional>
#include <span>
#include <vector>

#include "fusion/graph.hpp"

namespace hfta::fusion {

/// Values that flow through a graph: tensors, and numbers computed from sizes.
using ValueEnv = std::vector<c10::IValue>;

/// A node's op with its literals converted once; only values are filled in per call.
class BoxedOp {
 public:
  /// `node`: of with_complete_arguments. Throws Error{kConfig} if an argument does not fit the op's schema.
  BoxedOp(const Node& node, const at::Device& device);

  /// Changes a tensor on its way into the op.
  using Change = std::function<at::Tensor(ValueId, const at::Tensor&)>;
  /// Calls the op. `values` are indexed by ValueId; `hypers` are Graph::hypers' values. Outputs are Node::outputs.
  [[nodiscard]] ValueEnv call(std::span<const c10::IValue> values, std::span<const double> hypers = {},
                              const Change& change = nullptr) const;

  /// This op with dimension arguments that do not count a leading slot dimension: non-negative ones move up by one.
  /// `dims` are the positions of those arguments.
  [[nodiscard]] BoxedOp with_slot_dimension(std::span<const int> dims) const;

 private:
  struct Filled {
    std::size_t position = 0;
    ValueId value = kNoValue;
    bool tensor = false;  ///< The schema wants a tensor, so a number has to be wrapped.
  };

  struct Hyper {
    std::size_t position = 0;
    int index = 0;        ///< Position in Graph::hypers.
    bool tensor = false;  ///< See Filled::tensor.
  };

  c10::OperatorHandle op_;
  at::DeviceType device_;
  bool makes_complex_;                           ///< The op makes complex numbers of real ones.
  void (*check_)(std::span<const c10::IValue>);  ///< Refuses arguments that LibTorch does not survive; may be null.
  torch::jit::Stack literals_;
  std::vector<Filled> values_;
  std::vector<std::pair<std::size_t, std::vector<ValueId>>> tensors_;           ///< Tensor[]
  std::vector<std::pair<std::size_t, std::vector<ValueId>>> optional_tensors_;  ///< Tensor?[]
  std::vector<std::pair<std::size_t, std::vector<Size>>> sizes_;
  std::vector<Hyper> hypers_;
};

/// A list of sizes with its numbers filled in.
[[nodiscard]] std::vector<std::int64_t> resolve(const std::vector<Size>& sizes, std::span<const c10::IValue> values);

/// A number as a tensor that takes part in type promotion as a Python number does.
[[nodiscard]] at::Tensor wrapped_number(const c10::IValue& number);

}  // namespace hfta::fusion
