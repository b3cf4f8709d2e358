#include "fusion/eager/accumulation.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "fusion/eager/slot_tensor.hpp"

namespace hfta::fusion {
namespace {

at::Tensor by_slot_as(const at::Tensor& numbers, const at::Tensor& like) {
  return by_slot(numbers, like).to(like.scalar_type());
}

}  // namespace

void accumulate(std::span<ParameterSlots> parameters, const at::Tensor& total, std::span<const at::Tensor> objective,
                std::int64_t samples) {
  const at::NoGradGuard no_gradients;
  if (objective.size() == 1) {
    total.add_(static_cast<double>(samples));
    for (ParameterSlots& p : parameters) p.accumulated.add_(p.gradient, static_cast<double>(samples));
    return;
  }
  const at::Tensor weights = objective[1].detach().to(at::kDouble).view({-1});
  total.add_(weights);
  for (ParameterSlots& p : parameters) {
    const at::Tensor weight = by_slot_as(weights, p.gradient);
    p.accumulated.add_(at::where(weight.eq(0), 0.0, p.gradient * weight));
  }
}

void take_means(std::span<ParameterSlots> parameters, const at::Tensor& total) {
  const at::NoGradGuard no_gradients;
  const at::Tensor divisor = at::where(total.eq(0), 1.0, total);
  for (ParameterSlots& p : parameters) p.gradient = p.accumulated / by_slot_as(divisor, p.accumulated);
}

void begin_anew(std::span<const ParameterSlots> parameters, const at::Tensor& total, const at::Tensor& updated) {
  const at::NoGradGuard no_gradients;
  for (const ParameterSlots& p : parameters) p.accumulated.masked_fill_(by_slot(updated, p.accumulated), 0);
  total.masked_fill_(updated, 0);
}

}  // namespace hfta::fusion
