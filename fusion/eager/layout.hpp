#pragma once
/// Moving between [c, N, ...] and the layouts that plain kernels take, without copying where strides allow.

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace hfta::fusion {

/// A value that slots share as each slot's own: [...] -> [c, ...], a view.
[[nodiscard]] inline at::Tensor with_slots(const at::Tensor& shared, std::int64_t slots) {
  std::vector<std::int64_t> sizes = shared.sizes().vec();
  sizes.insert(sizes.begin(), slots);
  return shared.unsqueeze(0).expand(sizes);
}

/// Where the dimensions are that `order` brings to its own places, of `dims` in all: those behind it stay.
[[nodiscard]] inline std::vector<std::int64_t> inverse(const std::vector<std::int64_t>& order, std::int64_t dims) {
  std::vector<std::int64_t> back(static_cast<std::size_t>(dims));
  std::iota(back.begin(), back.end(), 0);
  std::int64_t to = 0;
  for (const std::int64_t from : order) back[static_cast<std::size_t>(from)] = to++;
  return back;
}

/// The tensor such that its dimensions lie in memory in this order, from the slowest to the fastest, behind those that
/// it has in front of them (slots); empty: row-major. A copy where it lies otherwise.
[[nodiscard]] inline at::Tensor in_order(const at::Tensor& t, const std::vector<std::int64_t>& order) {
  const std::int64_t front = t.dim() - static_cast<std::int64_t>(order.size());
  if (order.empty() || front < 0) return t.contiguous();
  std::vector<std::int64_t> dims(static_cast<std::size_t>(front));
  std::iota(dims.begin(), dims.end(), 0);
  for (const std::int64_t dim : order) dims.push_back(dim + front);
  return t.permute(dims).contiguous().permute(inverse(dims, t.dim()));
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

/// Planes, each of which an op takes by itself, one behind another as they lie in memory.
struct MergedPlanes {
  at::Tensor merged;  ///< The first two of the dimensions in front of a plane's, in their new order, are one.
  std::vector<std::int64_t> order;     ///< x's dimensions in their new order.
  std::int64_t first = 0, second = 0;  ///< Sizes of the two.

  /// Back to x's order; `y` has merged's dimensions in front of its planes.
  [[nodiscard]] at::Tensor restore(const at::Tensor& y) const {
    const at::Tensor apart = y.unflatten(0, {first, second});
    return apart.permute(inverse(order, apart.dim()));
  }
};

/// x: [c, N, ..., plane...], a plane of `plane_dims` dimensions. Where planes lie in another order than merge_batch()
/// can leave without a copy, [c, C, N] behind a product of columns, they stay where they are.
[[nodiscard]] inline MergedPlanes planes_in_memory_order(const at::Tensor& x, std::int64_t plane_dims) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(x.dim()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end() - plane_dims,
                   [&](std::int64_t a, std::int64_t b) { return x.stride(a) > x.stride(b); });
  const at::Tensor ordered = x.permute(order);
  order.resize(static_cast<std::size_t>(x.dim() - plane_dims));
  if (ordered.is_contiguous()) return {ordered.flatten(0, 1), order, ordered.size(0), ordered.size(1)};
  const MergedBatch batch = merge_batch(x);
  std::iota(order.begin(), order.end(), 0);
  if (!batch.slots_outer) std::swap(order[0], order[1]);
  return {batch.merged, order, batch.slots_outer ? batch.slots : batch.batch,
          batch.slots_outer ? batch.batch : batch.slots};
}

/// [c, N, C, ...] -> [N, c*C, ...]: slots as groups of channels.
[[nodiscard]] inline at::Tensor slots_into_channels(const at::Tensor& x) { return x.transpose(0, 1).flatten(1, 2); }

/// [N, c*C, ...] -> [c, N, C, ...].
[[nodiscard]] inline at::Tensor slots_out_of_channels(const at::Tensor& y, std::int64_t slots) {
  return y.unflatten(1, {slots, y.size(1) / slots}).transpose(0, 1);
}

}  // namespace hfta::fusion
