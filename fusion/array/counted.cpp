#include "fusion/array/counted.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "fusion/array/on_gpu.hpp"
#include "fusion/cpu/kernels/counted_mask.hpp"

namespace hfta::fusion {
namespace {

std::vector<std::int64_t> with_slots(std::vector<std::int64_t> sizes, const Call& call) {
  if (call.slots() > 0) sizes.insert(sizes.begin(), call.slots());
  return sizes;
}

// `fill(row, n, slot)` for each slot's part of a host tensor of float or double, then where `like` is.
template <typename Fill>
at::Tensor filled(const Call& call, std::vector<std::int64_t> sizes, const at::TensorOptions& like, Fill fill) {
  const auto type = like.dtype() == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor host = at::empty(with_slots(std::move(sizes), call), at::TensorOptions().dtype(type));
  const std::size_t slots = call.context().random.size();
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

}  // namespace

at::Tensor counted_masks(const Call& call, std::vector<std::int64_t> sizes, const std::vector<double>& rates,
                         const at::TensorOptions& like) {
  const auto node = static_cast<std::uint32_t>(call.index());
  const bool gpu_kernel = like.device().is_cuda() && (like.dtype() == at::kFloat || like.dtype() == at::kDouble);
  if (gpu_kernel) {
    const at::Tensor mask = at::empty(with_slots(sizes, call), like);
    if (has_gpu_kernels(mask)) {
      fill_masks_on_gpu(mask, rates, call.context().random, node);
      return mask;
    }
  }
  return filled(call, std::move(sizes), like, [&](auto* out, std::size_t n, std::size_t b) {
    const SlotRandom& random = call.context().random[b];
    fill_dropout_mask(out, n, rates[b], random.key, node, random.step);
  });
}

at::Tensor counted_uniform(const Call& call, std::vector<std::int64_t> sizes, const at::TensorOptions& like) {
  return filled(call, std::move(sizes), like, [&](auto* out, std::size_t n, std::size_t b) {
    const SlotRandom& random = call.context().random[b];
    fill_uniform(out, n, random.key, static_cast<std::uint32_t>(call.index()), random.step);
  });
}

at::Tensor counted_normal(const Call& call, std::vector<std::int64_t> sizes, const at::TensorOptions& like) {
  return filled(call, std::move(sizes), like, [&](auto* out, std::size_t n, std::size_t b) {
    const SlotRandom& random = call.context().random[b];
    std::vector<double> uniform(2 * n);
    fill_uniform(uniform.data(), uniform.size(), random.key, static_cast<std::uint32_t>(call.index()), random.step);
    for (std::size_t i = 0; i < n; ++i) {
      const double radius = std::sqrt(-2 * std::log(1 - uniform[2 * i]));  // 1 - u is never zero
      const double value = radius * std::cos(2 * std::numbers::pi * uniform[2 * i + 1]);
      out[i] = static_cast<std::remove_reference_t<decltype(out[i])>>(value);
    }
  });
}

at::Tensor beside(const std::vector<double>& per_slot, const Call& call, std::int64_t dim,
                  const at::TensorOptions& like) {
  const at::Tensor host = at::empty({static_cast<std::int64_t>(per_slot.size())}, at::kDouble);
  std::copy(per_slot.begin(), per_slot.end(), host.data_ptr<double>());
  const at::Tensor there = host.to(like.device(), like.dtype());
  if (call.slots() == 0) return there.squeeze();
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(std::max<std::int64_t>(dim, 1)), 1);
  sizes[0] = call.slots();
  return there.view(sizes);
}

std::vector<std::int64_t> slot_sizes(const at::Tensor& value, const Call& call) {
  return value.sizes().slice(call.slots() > 0 ? 1 : 0).vec();
}

}  // namespace hfta::fusion
