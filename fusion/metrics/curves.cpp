// Areas under the receiver operating characteristic and under precision over recall, exactly: all scores are sorted,
// and equal ones are one threshold.
//
// Until the end of an evaluation the device keeps, per slot and position, the scores in the output's dtype (C or K
// numbers of 4 bytes in float32) and the targets (4 bytes of classes, 1 per column). The areas are computed slot by
// slot, in blocks of classes.
#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

#include "fusion/metrics/statistic.hpp"

namespace hfta::fusion {
namespace {

constexpr std::int64_t kBlock = std::int64_t{1} << 20;  ///< Scores that are sorted at once.
constexpr int kLeftOut = -1;

struct Areas {
  at::Tensor roc, average_precision, positives;  ///< [classes], float64
};

// The sums at the end of the previous threshold. sums [k, M] do not fall; `end`: the last of equal scores.
at::Tensor at_threshold_before(const at::Tensor& sums, const at::Tensor& end) {
  const at::Tensor so_far = std::get<0>(at::where(end, sums, 0.0).cummax(1));
  return at::constant_pad_nd(so_far.narrow(1, 0, sums.size(1) - 1), {1, 0});
}

// scores [k, M]; positive, negative [k, M] float64: 1 or 0, both 0 where left out.
Areas areas_of(const at::Tensor& scores, const at::Tensor& positive, const at::Tensor& negative) {
  const auto [sorted, order] = scores.sort(1, true);
  const at::Tensor hits = positive.gather(1, order).cumsum(1), alarms = negative.gather(1, order).cumsum(1);
  at::Tensor end = at::ones_like(sorted, sorted.options().dtype(at::kBool));
  const std::int64_t last = sorted.size(1) - 1;
  end.narrow(1, 0, last).copy_(sorted.narrow(1, 0, last).ne(sorted.narrow(1, 1, last)));
  const at::Tensor hits_before = at_threshold_before(hits, end), alarms_before = at_threshold_before(alarms, end);
  const at::Tensor strip = (alarms - alarms_before) * (hits + hits_before) / 2;
  // Precision is 0/0 where nothing has counted yet, and recall does not rise there.
  const at::Tensor rise = (hits - hits_before) * hits / (hits + alarms).clamp_min(1);
  const auto total = [&](const at::Tensor& parts) { return at::where(end, parts, 0.0).sum(1); };
  const at::Tensor yes = hits.select(1, last), no = alarms.select(1, last);
  return {total(strip) / (yes * no), total(rise) / yes, yes};
}

/// The scores and targets of one slot.
class SlotCurves {
 public:
  SlotCurves(at::Tensor scores, at::Tensor target, bool classes)
      : scores_(std::move(scores)), target_(std::move(target)) {
    if (!classes) return;
    largest_ = scores_.amax(1).to(at::kDouble);
    total_ = (scores_.to(at::kDouble) - largest_.unsqueeze(1)).exp().sum(1);
  }

  [[nodiscard]] Areas areas() const {
    const std::int64_t width = scores_.size(1), block = std::max<std::int64_t>(1, kBlock / scores_.size(0));
    std::vector<at::Tensor> roc, precision, positives;
    for (std::int64_t k = 0; k < width; k += block) {
      const Areas some = areas_from(k, std::min(block, width - k));
      roc.push_back(some.roc);
      precision.push_back(some.average_precision);
      positives.push_back(some.positives);
    }
    return {at::cat(roc), at::cat(precision), at::cat(positives)};
  }

 private:
  // Areas of classes first, first + 1, ...
  [[nodiscard]] Areas areas_from(std::int64_t first, std::int64_t count) const {
    const at::Tensor scores = scores_.narrow(1, first, count).t();
    if (!largest_.defined()) {
      const at::Tensor yes = target_.narrow(1, first, count).t().to(at::kDouble);
      return areas_of(scores.contiguous(), yes, 1 - yes);
    }
    const at::Tensor softmax = (scores.to(at::kDouble) - largest_).exp() / total_;
    const at::Tensor classes = at::arange(first, first + count, target_.options()).unsqueeze(1);
    const at::Tensor yes = target_.eq(classes).to(at::kDouble);
    return areas_of(softmax, yes, target_.ne(kLeftOut).to(at::kDouble) - yes);
  }

  at::Tensor scores_;           ///< [M, C or K]
  at::Tensor target_;           ///< classes [M], kLeftOut; yes and no [M, K], bool
  at::Tensor largest_, total_;  ///< [M], float64: softmax over classes, block by block
};

class Curves final : public StatisticSum {
 public:
  void add(const MetricBatch& batch) override {
    classes_ = batch.has_classes();
    scores_.push_back(batch.scores().clone(at::MemoryFormat::Contiguous));  // the next batch may take its memory
    target_.push_back(classes_ ? at::where(batch.weight().gt(0), batch.target(), kLeftOut).to(at::kInt)
                               : batch.target().to(at::kBool));
  }

  void write(std::vector<SlotSums>& slots) const override {
    for (std::size_t b = 0; b < slots.size(); ++b) {
      const at::Tensor scores = of_slot(scores_, b);
      if (scores.size(0) == 0) continue;
      const Areas areas = SlotCurves(scores, of_slot(target_, b), classes_).areas();
      set(slots[b].roc_area, areas.roc.cpu());
      set(slots[b].average_precision, areas.average_precision.cpu());
      set(slots[b].positives, areas.positives.cpu());
    }
  }

 private:
  static at::Tensor of_slot(const std::vector<at::Tensor>& batches, std::size_t b) {
    std::vector<at::Tensor> rows;
    rows.reserve(batches.size());
    for (const at::Tensor& batch : batches) rows.push_back(batch[static_cast<std::int64_t>(b)]);
    return at::cat(rows);
  }

  bool classes_ = false;
  std::vector<at::Tensor> scores_, target_;  ///< By batch: scores, and targets as in SlotCurves.
};

}  // namespace

std::unique_ptr<StatisticSum> make_curves() { return std::make_unique<Curves>(); }

}  // namespace hfta::fusion
