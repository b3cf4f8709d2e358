#include "fusion/capture/step_kernels.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "fusion/cuda/slot_kernels.hpp"
#include "fusion/eager/kernel_types.hpp"

namespace hfta::fusion {
namespace {

std::size_t elements_per_slot(const at::Tensor& t, int slots) {
  return static_cast<std::size_t>(t.numel() / std::max(slots, 1));
}

// ---- on a CPU ----

template <typename T>
void step_rows(const std::vector<ParameterSlots>& parameters, const StepParams& live) {
  std::vector<SlotRow<T>> rows(parameters.size());
  for (std::size_t b = 0; b < static_cast<std::size_t>(live.slots()); ++b) {
    if (live.updates()[b] == 0) continue;
    for (std::size_t k = 0; k < rows.size(); ++k) rows[k] = row_of<T>(parameters[k], b);
    step_slot(std::span<const SlotRow<T>>(rows), live.numbers_of<T>(b), live.clip_norm(b));
  }
}

// ---- on a GPU ----

template <typename T>
std::vector<cuda::SlotRows<T>> rows_of(const std::vector<ParameterSlots>& parameters, int slots) {
  std::vector<cuda::SlotRows<T>> rows;
  for (const ParameterSlots& p : parameters) {
    cuda::SlotRows<T>& row = rows.emplace_back(
        cuda::SlotRows<T>{p.weight.data_ptr<T>(), p.gradient.data_ptr<T>(), {}, elements_per_slot(p.weight, slots)});
    for (std::size_t s = 0; s < p.states.size(); ++s) {
      row.states[s] = p.states[s].defined() ? p.states[s].data_ptr<T>() : nullptr;
    }
  }
  return rows;
}

// `workspace`: doubles, those of clip_factors and then the factors; undefined where no slot clips.
template <typename T>
void step_on_gpu(const std::vector<ParameterSlots>& parameters, const StepParams& live, const at::Tensor& workspace) {
  const std::vector<cuda::SlotRows<T>> rows = rows_of<T>(parameters, live.slots());
  std::vector<unsigned short> group_of;
  group_of.reserve(parameters.size());
  for (const ParameterSlots& p : parameters) group_of.push_back(static_cast<unsigned short>(p.group));
  const cuda::SlotParameters<T> all{rows.data(), group_of.data(), static_cast<int>(rows.size()), live.slots()};
  void* const stream = native_stream(parameters.front().weight.device());
  double* factors = nullptr;
  if (workspace.defined()) {
    factors = workspace.data_ptr<double>() + workspace.numel() - live.slots();
    cuda::clip_factors(all, live.clip_norms(), workspace.data_ptr<double>(), factors, stream);
  }
  cuda::step(live.kind(), all, {live.numbers(), live.updates(), factors, live.groups()}, stream);
}

template <typename T>
void step_on(const std::vector<ParameterSlots>& parameters, const StepParams& live, const at::Tensor& workspace) {
  if (parameters.front().weight.is_cuda()) {
    step_on_gpu<T>(parameters, live, workspace);
  } else {
    step_rows<T>(parameters, live);
  }
}

}  // namespace

bool has_step_kernels(const at::Device& device) { return device.is_cpu() || (device.is_cuda() && cuda::built()); }

void StepKernels::launch(const std::function<void()>& kernel) const {
  if (lane_ == nullptr) return kernel();
  lane_->launch(kernel);
}

// Calls `on_gpu(to, draw, stream)`, or `on_cpu(row, n, slot)` for every slot's part of `out`.
template <typename OnGpu, typename OnCpu>
void StepKernels::fill(const at::Tensor& out, std::uint32_t node, OnGpu on_gpu, OnCpu on_cpu) const {
  const int slots = numbers_.slots();
  const std::size_t n = elements_per_slot(out, slots);
  const cuda::Draw draw{numbers_.random(), slots, n, node};
  launch([=] {
    typed(out, [&](auto number) {
      auto* const to = out.data_ptr<decltype(number)>();
      if (out.is_cuda()) return on_gpu(to, draw, native_stream(out.device()));
      for (std::size_t b = 0; b < static_cast<std::size_t>(slots); ++b) on_cpu(to + b * n, n, b);
    });
  });
}

void StepKernels::fill_masks(const at::Tensor& out, const SlotNumbers& rates, std::uint32_t node) const {
  const at::Tensor by_slot = rates.is_one() ? at::Tensor() : rates.as(out.options().dtype(at::kDouble));
  const double one = rates.is_one() ? rates.known().front() : 0;
  const SlotRandom* const random = numbers_.random();
  fill(
      out, node,
      [=](auto* to, const cuda::Draw& draw, void* stream) {
        cuda::dropout_masks(to, draw, {numbers_or_null<double>(by_slot), one}, stream);
      },
      [=](auto* row, std::size_t n, std::size_t b) {
        const double rate = by_slot.defined() ? by_slot.const_data_ptr<double>()[b] : one;
        fill_dropout_mask(row, n, rate, random[b].key, node, random[b].step);
      });
}

void StepKernels::fill_uniforms(const at::Tensor& out, std::uint32_t node) const {
  const SlotRandom* const random = numbers_.random();
  fill(
      out, node, [](auto* to, const cuda::Draw& draw, void* stream) { cuda::uniforms(to, draw, stream); },
      [=](auto* row, std::size_t n, std::size_t b) { fill_uniform(row, n, random[b].key, node, random[b].step); });
}

void StepKernels::fill_normals(const at::Tensor& out, std::uint32_t node) const {
  const SlotRandom* const random = numbers_.random();
  fill(
      out, node, [](auto* to, const cuda::Draw& draw, void* stream) { cuda::normals(to, draw, stream); },
      [=](auto* row, std::size_t n, std::size_t b) { fill_normal(row, n, random[b].key, node, random[b].step); });
}

at::Tensor StepKernels::rows(const at::Tensor& all, std::int64_t n, const at::Tensor& order) const {
  std::vector<std::int64_t> sizes = all.sizes().vec();
  const std::size_t bytes = all.nbytes() / static_cast<std::size_t>(std::max<std::int64_t>(1, sizes.at(0)));
  sizes[0] = n;
  at::Tensor out = at::empty(sizes, all.options());
  const StepParams& live = numbers_;
  launch([=, &live] {
    auto* const to = static_cast<std::byte*>(out.data_ptr());
    const auto* const from = static_cast<const std::byte*>(all.const_data_ptr());
    const std::int64_t* const places = order.defined() ? order.const_data_ptr<std::int64_t>() : nullptr;
    const auto rows = static_cast<std::size_t>(n);
    if (out.is_cuda()) {
      return cuda::batch_rows(to, rows, from, bytes, places, live.begin(), native_stream(out.device()));
    }
    for (std::size_t i = 0; bytes > 0 && i < rows; ++i) {
      const std::int64_t at = *live.begin() + static_cast<std::int64_t>(i);
      std::memcpy(to + i * bytes, from + static_cast<std::size_t>(places != nullptr ? places[at] : at) * bytes, bytes);
    }
  });
  return out;
}

void StepKernels::step(std::span<const ParameterSlots> parameters) const {
  if (parameters.empty()) return;
  const StepParams& live = numbers_;
  const std::vector<ParameterSlots> all(parameters.begin(), parameters.end());
  at::Tensor workspace;
  if (clips_ && all.front().weight.is_cuda()) {
    std::vector<std::size_t> sizes;
    sizes.reserve(all.size());
    for (const ParameterSlots& p : all) sizes.push_back(elements_per_slot(p.weight, live.slots()));
    const std::size_t doubles = cuda::clip_workspace(sizes.data(), static_cast<int>(sizes.size()), live.slots());
    workspace =
        at::empty({static_cast<std::int64_t>(doubles) + live.slots()}, all.front().weight.options().dtype(at::kDouble));
  }
  launch([=, &live] {
    live.type() == at::kDouble ? step_on<double>(all, live, workspace) : step_on<float>(all, live, workspace);
  });
}

}  // namespace hfta::fusion
