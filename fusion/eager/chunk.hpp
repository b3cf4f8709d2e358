#pragma once
/// Tensors that a chunk of slots reads and writes at every step, made once: views of its rows as autograd's leaves.

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

#include "fusion/eager/optimizer.hpp"
#include "fusion/execution/executor.hpp"

namespace hfta::fusion {

struct Chunk {
  std::vector<at::Tensor> leaves;          ///< Graph::weights' order; [c, ...], or [...] where c is 1
  std::vector<std::size_t> trained;        ///< Indices into leaves.
  std::vector<ParameterSlots> parameters;  ///< The parameters of `trained`, without gradients.
  std::vector<at::Tensor> kept_gradients;  ///< The gradients of `trained`, where they are kept.
  at::Tensor gradient_weight;              ///< SlotStore::gradient_weight, [c]; undefined: one batch a step.

  /// Rows [first, first + slots) of the model's store.
  Chunk(const ExecutorModel& model, int first, int slots);

  /// Takes gradients away from the leaves: parameters that the last backward reached, with theirs. A weight that the
  /// loss does not depend on has no gradient and stays.
  [[nodiscard]] std::vector<ParameterSlots> take_gradients(bool keep);
  /// Throws away what a backward left that was cut short.
  void drop_gradients();
};

}  // namespace hfta::fusion
