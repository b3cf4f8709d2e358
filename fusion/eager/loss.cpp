#include "fusion/eager/loss.hpp"

#include <ATen/ATen.h>

#include "fusion/cuda/loss_kernels.hpp"
#include "fusion/eager/kernel_types.hpp"
#include "fusion/graph/untrained.hpp"

namespace hfta::fusion {
namespace {

bool kernel_adds(std::span<const at::Tensor> objective) {
  return kernels_take(objective[0]) &&
         (objective.size() == 1 || objective[1].scalar_type() == objective[0].scalar_type());
}

void add_by_kernel(const at::Tensor& losses, std::span<const at::Tensor> objective, std::int64_t samples) {
  const at::Tensor loss = objective[0].detach().view({-1}).contiguous();
  const at::Tensor weight = objective.size() > 1 ? objective[1].detach().view({-1}) : at::Tensor();
  const std::size_t stride = weight.defined() && weight.numel() > 1 ? static_cast<std::size_t>(weight.stride(0)) : 0;
  typed(loss, [&](auto number) {
    using T = decltype(number);
    cuda::add_losses(cuda::StepLosses<T>{loss.const_data_ptr<T>(), numbers_or_null<T>(weight), stride,
                                         static_cast<double>(samples), static_cast<int>(loss.numel())},
                     losses.data_ptr<double>(), native_stream(loss.device()));
  });
}

}  // namespace

void backward(const at::Tensor& loss) {
  if (!loss.requires_grad()) fail_untrained();
  loss.backward(at::ones_like(loss));  // the gradient of the sum, not of the mean
}

void add_loss(at::Tensor& losses, std::span<const at::Tensor> objective, std::int64_t samples) {
  if (kernel_adds(objective)) return add_by_kernel(losses, objective, samples);
  const at::Tensor loss = objective[0].detach().to(at::kDouble).view({-1});
  if (objective.size() == 1) {
    losses.select(0, 0).add_(loss, static_cast<double>(samples));
    losses.select(0, 1).add_(static_cast<double>(samples));
    return;
  }
  const at::Tensor weight = objective[1].detach().to(at::kDouble).view({-1});
  // A batch without weight (all of its labels ignored) has no mean.
  losses.select(0, 0).add_(at::where(weight.eq(0), 0.0, loss * weight));
  losses.select(0, 1).add_(weight);
}

}  // namespace hfta::fusion
