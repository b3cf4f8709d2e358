// The statistics that are sums over positions.
#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

#include "fusion/metrics/statistic.hpp"

namespace hfta::fusion {
namespace {

/// The sum of what each batch adds to a field: [c] or [c, ...], float64.
template <typename Field>
class PlainSum final : public StatisticSum {
 public:
  using Part = at::Tensor (*)(const MetricBatch& batch);
  PlainSum(Field SlotSums::*field, Part part) : field_(field), part_(part) {}

  void add(const MetricBatch& batch) override {
    const at::Tensor part = part_(batch);
    sum_ = sum_.defined() ? sum_ + part : part;
  }
  void write(std::vector<SlotSums>& slots) const override { write_rows(sum_, field_, slots); }

 private:
  Field SlotSums::*field_;
  Part part_;
  at::Tensor sum_;
};

template <typename Field>
std::unique_ptr<StatisticSum> plain_sum(Field SlotSums::*field, typename PlainSum<Field>::Part part) {
  return std::make_unique<PlainSum<Field>>(field, part);
}

at::Tensor hits_of(const MetricBatch& batch) { return batch.weight() * batch.predicted().eq(batch.target()); }

at::Tensor hits(const MetricBatch& batch) { return hits_of(batch).flatten(1).sum(1); }

// How many classes are ahead of the target's.
at::Tensor ranks(const MetricBatch& batch) {
  const at::Tensor scores = batch.scores(), classes = batch.target().unsqueeze(2), own = scores.gather(2, classes);
  const at::Tensor before = at::arange(batch.width(), classes.options()).lt(classes);
  const at::Tensor ahead = scores.gt(own).logical_or(scores.eq(own).logical_and(before));
  return batch.per_class(ahead.sum(2), batch.weight());
}

// Log-probabilities are logits, too. What is left out may be NaN.
at::Tensor nll(const MetricBatch& batch) {
  const at::Tensor likelihood =
      batch.scores().to(at::kDouble).log_softmax(2).gather(2, batch.target().unsqueeze(2)).squeeze(2);
  return at::where(batch.weight().gt(0), -likelihood, 0.0).sum(1);
}

class ClassCounts final : public StatisticSum {
 public:
  void add(const MetricBatch& batch) override {
    const at::Tensor part =
        at::stack({batch.per_class(batch.target(), hits_of(batch)), batch.per_class(batch.predicted(), batch.weight()),
                   batch.per_class(batch.target(), batch.weight())});
    counts_ = counts_.defined() ? counts_ + part : part;
  }

  void write(std::vector<SlotSums>& slots) const override {
    const at::Tensor host = counts_.cpu();
    write_rows(host[0], &SlotSums::both, slots);
    write_rows(host[1], &SlotSums::predicted, slots);
    write_rows(host[2], &SlotSums::wanted, slots);
  }

 private:
  at::Tensor counts_;  ///< [3, c, C or K]
};

at::Tensor confusion(const MetricBatch& batch) {
  const std::int64_t classes = batch.has_classes() ? batch.width() : 2;
  const at::Tensor pairs = (batch.target() * classes + batch.predicted()).flatten(1);
  return at::zeros({pairs.size(0), classes * classes}, batch.weight().options())
      .scatter_add_(1, pairs, batch.weight().flatten(1));
}

at::Tensor error(const MetricBatch& batch) { return batch.scores().to(at::kDouble) - batch.target(); }

at::Tensor squares(const MetricBatch& batch) { return error(batch).square().sum(1); }

at::Tensor absolute(const MetricBatch& batch) { return error(batch).abs().flatten(1).sum(1); }

// scikit-learn's guard for a target of 0.
at::Tensor percentage(const MetricBatch& batch) {
  const at::Tensor size = batch.target().abs().clamp_min(std::numeric_limits<double>::epsilon());
  return (error(batch).abs() / size).flatten(1).sum(1);
}

}  // namespace

void set(double& field, const at::Tensor& row) { field = row.item<double>(); }

void set(std::vector<double>& field, const at::Tensor& row) {
  const at::Tensor flat = row.contiguous();
  field.assign(flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel());
}

std::unique_ptr<StatisticSum> make_sum(Statistic statistic) {
  switch (statistic) {
    case Statistic::kHits:
      return plain_sum(&SlotSums::hits, hits);
    case Statistic::kRanks:
      return plain_sum(&SlotSums::ranks, ranks);
    case Statistic::kNll:
      return plain_sum(&SlotSums::nll, nll);
    case Statistic::kClassCounts:
      return std::make_unique<ClassCounts>();
    case Statistic::kConfusion:
      return plain_sum(&SlotSums::confusion, confusion);
    case Statistic::kCurves:
      return make_curves();
    case Statistic::kSquares:
      return plain_sum(&SlotSums::squared, squares);
    case Statistic::kSpread:
      return make_spread();
    case Statistic::kAbsolute:
      return plain_sum(&SlotSums::absolute, absolute);
    case Statistic::kPercentage:
      break;
  }
  return plain_sum(&SlotSums::percentage, percentage);
}

}  // namespace hfta::fusion
