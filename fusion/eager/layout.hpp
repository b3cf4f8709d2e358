#pragma once
/// Moving between [c, N, ...] and the layouts that plain kernels take, without copying where strides allow.

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

namespace hfta::fusion {

/// What slots share as each one's own: [...] -> [c, ...], a view.
[[nodiscard]] inline at::Tensor with_slots(const at::Tensor& shared, std::int64_t slots) {
  std::vector<std::int64_t> sizes = shared.sizes().vec();
  sizes.insert(sizes.begin(), slots);
  return shared.unsqueeze(0).expand(sizes);
}

/// Slots and batch as one leading dimension, in whichever order needs no copy.
struct MergedBatch {
  at::Tensor merged;  ///< [c*N, ...] or [N*c, ...]
  bool slots_outer = true;
  std::int64_t slots = 0, batch = 0;

  /// Back to [c, N, ...]; `y` has merged's leading dimension.
  [[nodiscard]] at::Tensor restore(const at::Tensor& y) const {
    return slots_outer ? y.unflatten(0, {slots, batch}) : y.unflatten(0, {batch, slots}).transpose(0, 1);
  }
};

/// x: [c, N, ...].
[[nodiscard]] inline MergedBatch merge_batch(const at::Tensor& x) {
  const std::int64_t c = x.size(0), n = x.size(1);
  const bool slots_inside = x.stride(1) == c * x.stride(0) && x.stride(0) != n * x.stride(1);
  if (slots_inside) return {x.transpose(0, 1).flatten(0, 1), false, c, n};
  return {x.flatten(0, 1), true, c, n};
}

/// [c, N, C, ...] -> [N, c*C, ...]: slots as groups of channels.
[[nodiscard]] inline at::Tensor slots_into_channels(const at::Tensor& x) { return x.transpose(0, 1).flatten(1, 2); }

/// [N, c*C, ...] -> [c, N, C, ...].
[[nodiscard]] inline at::Tensor slots_out_of_channels(const at::Tensor& y, std::int64_t slots) {
  return y.unflatten(1, {slots, y.size(1) / slots}).transpose(0, 1);
}

}  // namespace hfta::fusion
