#include "fusion/capture/step_params.hpp"

#include <ATen/ATen.h>

#include <cstring>
#include <type_traits>

#include "fusion/cuda/slot_kernels.hpp"
#include "fusion/eager/kernel_types.hpp"

namespace hfta::fusion {
namespace {

constexpr std::size_t kAlignment = 16;

// Where a part of `bytes` bytes begins; moves `end` behind it.
std::size_t behind(std::size_t& end, std::size_t bytes) {
  const std::size_t begin = end;
  end = (end + bytes + kAlignment - 1) / kAlignment * kAlignment;
  return begin;
}

std::size_t size_of_numbers(OptimizerKind kind, at::ScalarType type) {
  std::size_t size = 0;
  with_rule(kind, [&](auto rule) {
    using Rule = decltype(rule);
    size = type == at::kDouble ? sizeof(typename Rule::template Numbers<double>)
                               : sizeof(typename Rule::template Numbers<float>);
  });
  return size;
}

template <typename T>
void put(std::byte* to, std::size_t index, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(to + index * sizeof(T), &value, sizeof(T));
}

template <typename T>
void put_numbers(std::byte* to, std::size_t slot, OptimizerKind kind, std::span<const SlotStep> steps) {
  with_rule(kind, [&](auto rule) {
    for (std::size_t g = 0; g < steps.size(); ++g) {
      put(to, slot * steps.size() + g, numbers_of<decltype(rule), T>(steps[g]));
    }
  });
}

}  // namespace

StepParams::StepParams(OptimizerKind kind, at::ScalarType type, int slots, int groups, int hypers,
                       const at::Device& device)
    : kind_(kind), type_(type), slots_(slots), groups_(groups), bytes_of_numbers_(size_of_numbers(kind, type)) {
  const auto count = static_cast<std::size_t>(slots);
  std::size_t end = 0;
  behind(end, sizeof(std::int64_t));
  random_ = behind(end, count * sizeof(SlotRandom));
  hyper_ = behind(end, count * static_cast<std::size_t>(hypers) * sizeof(double));
  clip_ = behind(end, count * sizeof(double));
  limit_ = behind(end, count * sizeof(double));
  updates_ = behind(end, count);
  numbers_ = behind(end, count * static_cast<std::size_t>(groups) * bytes_of_numbers_);
  bytes_ = at::zeros({static_cast<std::int64_t>(end)}, at::TensorOptions().dtype(at::kByte).device(device));
  const auto doubles = [&](std::size_t offset) {
    return bytes_.narrow(0, static_cast<std::int64_t>(offset), slots * static_cast<std::int64_t>(sizeof(double)))
        .view(at::kDouble);
  };
  for (int h = 0; h < hypers; ++h) {
    hypers_.push_back(doubles(hyper_ + static_cast<std::size_t>(h) * count * sizeof(double)));
  }
  limits_ = doubles(limit_);
}

void StepParams::set(std::span<const SlotRun> slots, std::int64_t begin) {
  const bool stored = bytes_.is_cuda() && cuda::built() && bytes_.nbytes() <= cuda::kMostStored;
  // Pinned memory is used again only when the copy from it is done: LibTorch's host allocator sees to that.
  const at::Tensor host =
      at::empty(bytes_.sizes(), at::TensorOptions().dtype(at::kByte).pinned_memory(bytes_.is_cuda() && !stored));
  auto* const to = static_cast<std::byte*>(host.data_ptr());
  put(to, 0, begin);
  for (std::size_t b = 0; b < slots.size(); ++b) {
    const SlotRun& slot = slots[b];
    put(to + random_, b, slot.random);
    for (std::size_t h = 0; h < hypers_.size(); ++h) put(to + hyper_, h * slots.size() + b, slot.hypers[h]);
    put(to + clip_, b, slot.steps.front().clip_norm.value_or(-1));
    put(to + limit_, b, weight_limit(slot.steps.front()));
    put(to + updates_, b, static_cast<unsigned char>(slot.steps.front().updates ? 1 : 0));
    if (type_ == at::kDouble) {
      put_numbers<double>(to + numbers_, b, kind_, slot.steps);
    } else {
      put_numbers<float>(to + numbers_, b, kind_, slot.steps);
    }
  }
  if (stored) return cuda::store(bytes_.data_ptr(), to, bytes_.nbytes(), native_stream(bytes_.device()));
  bytes_.copy_(host, /*non_blocking=*/true);
}

}  // namespace hfta::fusion
