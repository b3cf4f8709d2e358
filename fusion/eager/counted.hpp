#pragma once
/// Counted random tensors for the slots of a call: the same for a slot at any width.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "fusion/eager/batching_rule.hpp"

namespace hfta::fusion {

/// Dropout masks with values 0 or 1 / (1 - rate), each slot with its own rate. `sizes`: of one slot; the result has a
/// leading [c] if call.slots() is not 0. Made where `like` lies, of its dtype.
[[nodiscard]] at::Tensor counted_masks(const OpCall& call, std::vector<std::int64_t> sizes, const SlotNumbers& rates,
                                       const at::TensorOptions& like);

/// Numbers uniform in [0, 1), made alike. Both parts of a complex number are uniform, as in PyTorch.
[[nodiscard]] at::Tensor counted_uniform(const OpCall& call, std::vector<std::int64_t> sizes,
                                         const at::TensorOptions& like);

/// Standard normal numbers, made alike (Box-Muller). Parts of complex ones have half the variance, as in PyTorch.
[[nodiscard]] at::Tensor counted_normal(const OpCall& call, std::vector<std::int64_t> sizes,
                                        const at::TensorOptions& like);

/// One number per slot, [c, 1, ...] to stand beside values of `dim` dimensions; a number without dimensions for one
/// slot.
[[nodiscard]] at::Tensor beside(const SlotNumbers& per_slot, const OpCall& call, std::int64_t dim,
                                const at::TensorOptions& like);

/// Sizes of one slot's part of a value.
[[nodiscard]] std::vector<std::int64_t> slot_sizes(const at::Tensor& value, const OpCall& call);

}  // namespace hfta::fusion
