#include "fusion/metrics/batch.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"

namespace hfta::fusion {
namespace {

// [c, N, K, ...] -> [c, M, K]; [c, N] is one column.
at::Tensor by_position(const at::Tensor& t) { return t.dim() == 2 ? t.unsqueeze(2) : t.movedim(2, -1).flatten(1, -2); }

[[noreturn]] void misfit(OutputKind kind, const at::Tensor& output, const at::Tensor& target) {
  const auto shape = [](const at::Tensor& t) { return fmt::format("[{}]", fmt::join(t.sizes().slice(1), ", ")); };
  throw Error(
      ErrorKind::kConfig,
      fmt::format(
          "metrics: found {} {} with targets {}, wanted {}", name_of(kind), shape(output), shape(target),
          kind == OutputKind::kClassScores ? "scores [N, C, ...] with targets [N, ...]" : "targets of the same shape"));
}

}  // namespace

MetricBatch::MetricBatch(const at::Tensor& output, const at::Tensor& target, OutputKind kind,
                         std::optional<std::int64_t> ignore_index)
    : kind_(kind), output_(output) {
  const std::int64_t classes = has_classes() && output.dim() > 2 ? output.size(2) : 1;
  if ((has_classes() && output.dim() < 3) || output.numel() != target.numel() * classes) misfit(kind, output, target);
  if (has_classes()) {
    read_classes(target, ignore_index);
  } else if (kind == OutputKind::kValue) {
    read_values(target);
  } else {
    read_columns(target);
  }
}

at::Tensor MetricBatch::scores() const {
  if (kind_ != OutputKind::kValue) return by_position(output_);
  return output_.dim() == 2 ? output_.unsqueeze(2) : output_.flatten(2);
}

void MetricBatch::read_classes(const at::Tensor& target, std::optional<std::int64_t> ignore_index) {
  width_ = output_.size(2);
  const auto [largest, first] = output_.max(2);  // a NaN is the largest
  nan_ = largest.isnan().flatten(1);
  predicted_ = first.flatten(1);
  target_ = target.to(at::kLong).flatten(1);
  if (!ignore_index) {
    weight_ = at::ones({}, output_.options().dtype(at::kDouble)).expand_as(target_);
    return;
  }
  const at::Tensor counts = target_.ne(*ignore_index);
  weight_ = counts.to(at::kDouble);
  target_ = target_ * counts;
  nan_ = nan_.logical_and(counts);
}

void MetricBatch::read_columns(const at::Tensor& target) {
  const at::Tensor scores = by_position(output_);
  width_ = scores.size(2);
  predicted_ = scores.gt(kind_ == OutputKind::kProbability ? 0.5 : 0.0).to(at::kLong);
  target_ = by_position(target.reshape(output_.sizes())).gt(kind_ == OutputKind::kMargin ? 0.0 : 0.5).to(at::kLong);
  weight_ = at::ones({}, output_.options().dtype(at::kDouble)).expand_as(target_);
  nan_ = scores.isnan();
}

void MetricBatch::read_values(const at::Tensor& target) {
  const at::Tensor values = scores();
  width_ = values.size(2);
  target_ = target.to(at::kDouble).reshape(values.sizes());
  weight_ = at::ones({}, target_.options()).expand_as(target_);
  nan_ = values.isnan();
}

at::Tensor MetricBatch::per_class(const at::Tensor& labels, const at::Tensor& weights) const {
  if (!has_classes()) return (labels * weights).sum(1);
  return at::zeros({labels.size(0), width()}, weights.options()).scatter_add_(1, labels, weights);
}

at::Tensor MetricBatch::has_nan() const { return nan_.flatten(1).any(1); }

}  // namespace hfta::fusion
