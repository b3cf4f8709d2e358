#include "fusion/array/on_gpu.hpp"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cstring>

#include "fusion/cpu/kernels/optimizer.hpp"
#include "fusion/cuda/slot_kernels.hpp"

namespace hfta::fusion {
namespace {

void* current_stream(const at::Tensor& t) {
  return c10::impl::VirtualGuardImpl(t.device().type()).getStream(t.device()).native_handle();
}

// Plain values as bytes on the device. The caching allocator keeps the memory until the stream has passed.
template <typename T>
at::Tensor to_device(const std::vector<T>& values, const at::Device& device) {
  const at::Tensor host = at::empty({static_cast<std::int64_t>(values.size() * sizeof(T))}, at::kByte);
  std::memcpy(host.data_ptr(), values.data(), values.size() * sizeof(T));
  return host.to(device);
}

template <typename T>
const T* pointer(const at::Tensor& bytes) {
  return static_cast<const T*>(bytes.const_data_ptr());
}

template <typename T>
void step_typed(OptimizerKind kind, std::span<ParameterSlots> parameters, std::span<const SlotStep> slots,
                std::span<const double> factors) {
  const at::Tensor& like = parameters.front().weight;
  std::vector<unsigned char> occupied;
  std::vector<SgdNumbers<T>> sgd;
  std::vector<AdamNumbers<T>> adam;
  for (std::size_t b = 0; b < slots.size(); ++b) {
    occupied.push_back(slots[b].occupied ? 1 : 0);
    sgd.push_back(sgd_numbers<T>(slots[b], factors[b]));
    adam.push_back(adam_numbers<T>(slots[b], factors[b], kind == OptimizerKind::kAdamW));
  }
  const bool is_sgd = kind == OptimizerKind::kSgd;
  const at::Tensor numbers = is_sgd ? to_device(sgd, like.device()) : to_device(adam, like.device());
  const at::Tensor here = to_device(occupied, like.device());
  void* stream = current_stream(like);
  for (const ParameterSlots& p : parameters) {
    const auto n = static_cast<std::size_t>(p.weight.numel() / p.weight.size(0));
    const cuda::SlotRows<T> rows{p.weight.data_ptr<T>(),
                                 p.gradient.data_ptr<T>(),
                                 p.first.data_ptr<T>(),
                                 is_sgd ? nullptr : p.second.data_ptr<T>(),
                                 n,
                                 static_cast<int>(slots.size())};
    if (is_sgd) {
      cuda::sgd(rows, pointer<SgdNumbers<T>>(numbers), here.data_ptr<unsigned char>(), stream);
    } else {
      cuda::adam(rows, pointer<AdamNumbers<T>>(numbers), here.data_ptr<unsigned char>(), stream);
    }
  }
}

}  // namespace

bool has_gpu_kernels(const at::Tensor& t) { return t.is_cuda() && cuda::built(); }

void step_on_gpu(OptimizerKind kind, std::span<ParameterSlots> parameters, std::span<const SlotStep> slots,
                 std::span<const double> clip_factors) {
  const c10::DeviceGuard launches_there(parameters.front().weight.device());
  if (parameters.front().weight.scalar_type() == at::kDouble) {
    step_typed<double>(kind, parameters, slots, clip_factors);
  } else {
    step_typed<float>(kind, parameters, slots, clip_factors);
  }
}

void fill_masks_on_gpu(const at::Tensor& mask, std::span<const double> p, std::span<const SlotRandom> random,
                       std::uint32_t node) {
  const c10::DeviceGuard launches_there(mask.device());
  std::vector<cuda::MaskSource> sources;
  for (std::size_t b = 0; b < p.size(); ++b) {
    sources.push_back({random[b].key, random[b].step, std::clamp(1.0 - p[b], 0.0, 1.0)});
  }
  const at::Tensor on_device = to_device(sources, mask.device());
  const int slots = static_cast<int>(p.size());
  const auto n = static_cast<std::size_t>(mask.numel()) / p.size();
  const auto* source = pointer<cuda::MaskSource>(on_device);
  if (mask.scalar_type() == at::kDouble) {
    cuda::dropout_masks(mask.data_ptr<double>(), n, slots, source, node, current_stream(mask));
  } else {
    cuda::dropout_masks(mask.data_ptr<float>(), n, slots, source, node, current_stream(mask));
  }
}

}  // namespace hfta::fusion
