#pragma once
/// A batch of which each rank runs some samples, op by op through LibTorch on a CPU.

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "fusion/collectives.hpp"
#include "fusion/eager/optimizer.hpp"
#include "fusion/execution/executor.hpp"

namespace hfta::fusion {

/// The objective of the whole batch: loss and weight, [c] float64; gradients in `reached` become its, too. `batch`:
/// this rank's share; `objective`: its loss and, if it has one, its weight. Slots that are empty are left out of what
/// travels, and weigh nothing.
[[nodiscard]] std::vector<at::Tensor> mean_over_ranks(Collectives& group, const Batch& batch,
                                                      std::span<const SlotRun> slots,
                                                      std::span<const at::Tensor> objective,
                                                      std::span<ParameterSlots> reached);

}  // namespace hfta::fusion
