#include "fusion/array/counted.hpp"

#include <ATen/ATen.h>

#include <algorithm>

#include "fusion/array/live_kernels.hpp"
#include "fusion/cpu/kernels/counted_mask.hpp"

namespace hfta::fusion {
namespace {

std::vector<std::int64_t> with_slots(std::vector<std::int64_t> sizes, const Call& call) {
  if (call.slots() > 0) sizes.insert(sizes.begin(), call.slots());
  return sizes;
}

// Numbers are drawn in float or double, and then become what is wanted.
at::ScalarType drawn_type(const at::TensorOptions& like) {
  return like.dtype() == at::kDouble ? at::kDouble : at::kFloat;
}

// `fill(row, n, slot)` for each slot's part of a host tensor of float or double, then where `like` is.
template <typename Fill>
at::Tensor filled(const Call& call, std::vector<std::int64_t> sizes, const at::TensorOptions& like, Fill fill) {
  const auto type = drawn_type(like);
  const at::Tensor host = at::empty(with_slots(std::move(sizes), call), at::TensorOptions().dtype(type));
  const std::size_t slots = call.context().members();
  const std::size_t n = static_cast<std::size_t>(host.numel()) / slots;
  for (std::size_t b = 0; b < slots; ++b) {
    if (type == at::kDouble) {
      fill(host.data_ptr<double>() + b * n, n, b);
    } else {
      fill(host.data_ptr<float>() + b * n, n, b);
    }
  }
  return host.to(like.device(), like.dtype());
}

// The same by `fill(kernels, tensor)`, on the device.
template <typename Fill>
at::Tensor filled_live(const Call& call, std::vector<std::int64_t> sizes, const at::TensorOptions& like, Fill fill) {
  const at::Tensor out = at::empty(with_slots(std::move(sizes), call), like.dtype(drawn_type(like)));
  fill(*call.context().live, out);
  return out.to(like.dtype().toScalarType());
}

std::uint32_t node_of(const Call& call) { return static_cast<std::uint32_t>(call.index()); }

}  // namespace

at::Tensor counted_masks(const Call& call, std::vector<std::int64_t> sizes, const SlotNumbers& rates,
                         const at::TensorOptions& like) {
  if (call.context().live != nullptr) {
    return filled_live(call, std::move(sizes), like, [&](const LiveKernels& kernels, const at::Tensor& out) {
      kernels.fill_masks(out, rates, node_of(call));
    });
  }
  return filled(call, std::move(sizes), like, [&](auto* out, std::size_t n, std::size_t b) {
    const SlotRandom& random = call.context().random[b];
    fill_dropout_mask(out, n, rates.known()[b], random.key, node_of(call), random.step);
  });
}

at::Tensor counted_uniform(const Call& call, std::vector<std::int64_t> sizes, const at::TensorOptions& like) {
  if (call.context().live != nullptr) {
    return filled_live(call, std::move(sizes), like, [&](const LiveKernels& kernels, const at::Tensor& out) {
      kernels.fill_uniforms(out, node_of(call));
    });
  }
  return filled(call, std::move(sizes), like, [&](auto* out, std::size_t n, std::size_t b) {
    const SlotRandom& random = call.context().random[b];
    fill_uniform(out, n, random.key, node_of(call), random.step);
  });
}

at::Tensor counted_normal(const Call& call, std::vector<std::int64_t> sizes, const at::TensorOptions& like) {
  if (call.context().live != nullptr) {
    return filled_live(call, std::move(sizes), like, [&](const LiveKernels& kernels, const at::Tensor& out) {
      kernels.fill_normals(out, node_of(call));
    });
  }
  return filled(call, std::move(sizes), like, [&](auto* out, std::size_t n, std::size_t b) {
    const SlotRandom& random = call.context().random[b];
    fill_normal(out, n, random.key, node_of(call), random.step);
  });
}

at::Tensor beside(const SlotNumbers& per_slot, const Call& call, std::int64_t dim, const at::TensorOptions& like) {
  const at::Tensor there = per_slot.as(like);
  if (call.slots() == 0) return there.squeeze();
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(std::max<std::int64_t>(dim, 1)), 1);
  sizes[0] = call.slots();
  return there.view(sizes);
}

std::vector<std::int64_t> slot_sizes(const at::Tensor& value, const Call& call) {
  return value.sizes().slice(call.slots() > 0 ? 1 : 0).vec();
}

}  // namespace hfta::fusion
