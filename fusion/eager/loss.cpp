#include "fusion/eager/loss.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace hfta::fusion {
namespace {

// Sum over everything but the leading slot dimension.
at::Tensor per_slot(const at::Tensor& t) { return t.dim() > 1 ? t.flatten(1).sum(1) : t; }

// A [N] target beside a [N, 1] output means one column.
at::Tensor like_output(const at::Tensor& target, const at::Tensor& output) {
  return target.dim() == output.dim() ? target : target.reshape(output.sizes());
}

// PyTorch's definition: (1 - e) * nll + e / K * sum over classes of -log p, averaged over every position.
at::Tensor wide_cross_entropy(const at::Tensor& output, const at::Tensor& target, const SlotNumbers& smoothing) {
  const at::Tensor log_p = at::log_softmax(output, 2);
  const at::Tensor nll = -log_p.gather(2, target.unsqueeze(2)).flatten(1).mean(1);
  if (smoothing.all([](double e) { return e == 0; })) return nll;
  const at::Tensor e = smoothing.as(output.options());
  // A slot without smoothing must not see the mean, which may be infinite.
  return (1 - e) * nll - at::where(e.gt(0), e * log_p.flatten(1).mean(1), 0.0);
}

at::Tensor cross_entropy(const at::Tensor& output, const at::Tensor& target, const SlotNumbers& smoothing) {
  if (!smoothing.is_known()) return wide_cross_entropy(output.unsqueeze(0), target.unsqueeze(0), smoothing).squeeze(0);
  return at::cross_entropy_loss(output, target, {}, at::Reduction::Mean, -100, smoothing.known().at(0));
}

}  // namespace

at::Tensor slot_loss(Loss loss, const at::Tensor& output, const at::Tensor& target, int slots,
                     const SlotNumbers& smoothing) {
  if (loss == Loss::kCrossEntropy) {
    return slots > 0 ? wide_cross_entropy(output, target, smoothing) : cross_entropy(output, target, smoothing);
  }
  const at::Tensor wanted = like_output(target, output);
  const at::Tensor each = loss == Loss::kMse
                              ? at::mse_loss(output, wanted, at::Reduction::None)
                              : at::binary_cross_entropy_with_logits(output, wanted, {}, {}, at::Reduction::None);
  return slots > 0 ? each.flatten(1).mean(1) : each.mean();
}

void backward(const at::Tensor& loss) {
  if (!loss.requires_grad()) {
    throw Error(ErrorKind::kConfig, "model: found no trained parameter that the loss depends on, wanted one");
  }
  (loss.dim() > 0 ? loss.sum() : loss).backward();  // the sum, not the mean
}

MetricSums::MetricSums(const Recipe& recipe, int slots) : recipe_(recipe), slots_(slots) {}

bool MetricSums::wants(Metric metric) const {
  return std::find(recipe_.metrics.begin(), recipe_.metrics.end(), metric) != recipe_.metrics.end();
}

void MetricSums::add(const at::Tensor& batch_output, const at::Tensor& batch_target) {
  const at::Tensor output = slots_ > 0 ? batch_output : batch_output.unsqueeze(0);
  const at::Tensor target = slots_ > 0 ? batch_target : batch_target.unsqueeze(0);
  const std::int64_t n = output.size(1);
  const auto accumulate = [](at::Tensor& sum, const at::Tensor& part) {
    const at::Tensor exact = part.to(at::kDouble);
    sum = sum.defined() ? sum + exact : exact;
  };
  samples_ += n;
  const std::vector<double> unsmoothed(static_cast<std::size_t>(output.size(0)), 0.0);
  accumulate(loss_, slot_loss(recipe_.loss, output, target, static_cast<int>(output.size(0)), unsmoothed) *
                        static_cast<double>(n));
  if (wants(Metric::kAccuracy)) {
    const at::Tensor hits = recipe_.loss == Loss::kCrossEntropy ? output.argmax(2).eq(target)
                                                                : output.gt(0).eq(like_output(target, output).gt(0.5));
    elements_ = hits.numel() / (hits.size(0) * n);
    accumulate(correct_, per_slot(hits.to(at::kDouble)));
  }
  if (wants(Metric::kMse) || wants(Metric::kMae) || wants(Metric::kR2)) {
    const at::Tensor y = like_output(target, output).to(at::kDouble);
    const at::Tensor rows = y.dim() == 2 ? y.unsqueeze(2) : y.flatten(2);
    const at::Tensor error = output.to(at::kDouble).reshape(rows.sizes()) - rows;
    elements_ = rows.size(2);
    accumulate(squared_, error.square().sum(1));
    accumulate(absolute_, per_slot(error.abs()));
    if (!origin_.defined()) origin_ = rows.narrow(1, 0, 1).clone();
    const at::Tensor moved = rows - origin_;
    accumulate(target_, moved.sum(1));
    accumulate(target_squared_, moved.square().sum(1));
  }
}

std::vector<std::map<std::string, double>> MetricSums::result() const {
  const std::int64_t slots = std::max(slots_, 1);
  const auto samples = static_cast<double>(samples_);
  const auto all = samples * static_cast<double>(std::max<std::int64_t>(elements_, 1));
  const auto host = [](const at::Tensor& t) { return t.defined() ? t.cpu().contiguous() : t; };
  const auto at = [](const at::Tensor& t, std::int64_t b) { return t.data_ptr<double>()[b]; };
  const at::Tensor loss = host(loss_), correct = host(correct_), absolute = host(absolute_);
  at::Tensor squared_sum, r2;
  if (squared_.defined()) {
    squared_sum = host(squared_.sum(1));
    const at::Tensor spread = target_squared_ - target_.square() / samples;
    // scikit-learn's convention for a constant target: 1 if predicted exactly, else 0.
    const at::Tensor exact = squared_.eq(0).to(at::kDouble);
    r2 = host(at::where(spread.gt(0), 1 - squared_ / spread, exact).mean(1));
  }
  std::vector<std::map<std::string, double>> out(static_cast<std::size_t>(slots));
  for (std::int64_t b = 0; b < slots; ++b) {
    auto& metrics = out[static_cast<std::size_t>(b)];
    metrics["loss"] = at(loss, b) / samples;
    if (wants(Metric::kAccuracy)) metrics["accuracy"] = at(correct, b) / all;
    if (wants(Metric::kMse)) metrics["mse"] = at(squared_sum, b) / all;
    if (wants(Metric::kMae)) metrics["mae"] = at(absolute, b) / all;
    if (wants(Metric::kR2)) metrics["r2"] = at(r2, b);
  }
  return out;
}

}  // namespace hfta::fusion
