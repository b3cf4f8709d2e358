#include "fusion/eager/ranks.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "fusion/collectives/gradient_mean.hpp"

namespace hfta::fusion {
namespace {

at::Tensor by_slot(const at::Tensor& numbers) { return numbers.detach().to(at::kDouble).view({-1}).contiguous(); }

template <typename T>
std::vector<at::Tensor> mean_of(Collectives& group, std::span<const SlotRun> slots, const at::Tensor& losses,
                                const at::Tensor& weights, std::span<ParameterSlots> reached) {
  std::vector<SlotMean<T>> means;
  for (std::size_t b = 0; b < slots.size(); ++b) {
    if (!slots[b].occupied) continue;
    SlotMean<T>& mean = means.emplace_back();
    mean.loss = losses.const_data_ptr<double>()[b];
    mean.weight = weights.const_data_ptr<double>()[b];
    for (ParameterSlots& p : reached) {
      const std::int64_t n = p.gradient.numel() / p.gradient.size(0);
      mean.gradients.emplace_back(p.gradient.template data_ptr<T>() + static_cast<std::int64_t>(b) * n,
                                  static_cast<std::size_t>(n));
    }
  }
  std::vector<T> memory;
  take_mean(group, std::span(means), memory);
  const auto options = at::TensorOptions().dtype(at::kDouble);
  const auto count = static_cast<std::int64_t>(slots.size());
  std::vector<at::Tensor> whole = {at::zeros({count}, options), at::zeros({count}, options)};
  auto next = means.begin();
  for (std::size_t b = 0; b < slots.size(); ++b) {
    if (!slots[b].occupied) continue;
    whole[0].data_ptr<double>()[b] = next->loss;
    whole[1].data_ptr<double>()[b] = next->weight;
    ++next;
  }
  return whole;
}

}  // namespace

std::vector<at::Tensor> mean_over_ranks(Collectives& group, const Batch& batch, std::span<const SlotRun> slots,
                                        std::span<const at::Tensor> objective, std::span<ParameterSlots> reached) {
  const at::NoGradGuard no_gradients;
  const at::Tensor losses = by_slot(objective[0]);
  at::Tensor weights = objective.size() > 1 ? by_slot(objective[1])
                                            : at::full_like(losses, static_cast<double>(batch.parts.front().size()));
  if (!batch.counts) weights = at::zeros_like(losses);
  // Autograd may have given two weights views of one memory.
  for (ParameterSlots& p : reached) p.gradient = p.gradient.clone();
  const bool is_double = !reached.empty() && reached.front().gradient.scalar_type() == at::kDouble;
  return is_double ? mean_of<double>(group, slots, losses, weights, reached)
                   : mean_of<float>(group, slots, losses, weights, reached);
}

}  // namespace hfta::fusion
