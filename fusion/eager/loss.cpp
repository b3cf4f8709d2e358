#include "fusion/eager/loss.hpp"

#include <ATen/ATen.h>

#include "base/error.hpp"

namespace hfta::fusion {

void backward(const at::Tensor& loss) {
  if (!loss.requires_grad()) {
    throw Error(ErrorKind::kConfig, "model: found no trained parameter that the loss depends on, wanted one");
  }
  (loss.dim() > 0 ? loss.sum() : loss).backward();  // the sum, not the mean
}

void add_loss(at::Tensor& losses, std::span<const at::Tensor> objective, std::int64_t samples) {
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
