#include "fusion/metrics/accumulator.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "base/error.hpp"
#include "fusion/metrics/statistic.hpp"

namespace hfta::fusion {
namespace {

/// The places of one metric's values: the last index is the fastest.
std::vector<std::vector<int>> indices_of(const MetricSpec& spec, std::size_t values) {
  const int count = index_count(spec);
  std::size_t side = 1;
  while (count == 2 && side * side < values) ++side;
  std::vector<std::vector<int>> all(values);
  for (std::size_t i = 0; i < values; ++i) {
    if (count == 2) all[i].push_back(static_cast<int>(i / side));
    if (count > 0) all[i].push_back(static_cast<int>(count == 2 ? i % side : i));
  }
  return all;
}

void write_metric(const MetricSpec& spec, const SlotSums& sums, bool defined, std::map<std::string, double>& metrics) {
  const std::vector<double> values = row_of(spec).values(spec, sums);
  check_value_count(spec, std::ssize(values));
  const std::vector<std::vector<int>> indices = indices_of(spec, values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    metrics[recorded_name(spec, indices[i])] = defined ? values[i] : std::numeric_limits<double>::quiet_NaN();
  }
}

}  // namespace

MetricAccumulator::MetricAccumulator(std::vector<MetricSpec> specs, OutputKind kind, int slots,
                                     std::optional<std::int64_t> ignore_index)
    : specs_(std::move(specs)), kind_(kind), slots_(slots), ignore_index_(ignore_index) {
  std::set<Statistic> reads;
  for (const MetricSpec& spec : specs_) {
    const MetricRow& row = row_of(spec);
    if (!row.info.takes_kind(kind)) {
      throw Error(ErrorKind::kConfig,
                  fmt::format("metrics: found {}, wanted a metric of {}", spec.name, name_of(kind)));
    }
    reads.insert(row.reads.begin(), row.reads.end());
  }
  for (const Statistic statistic : reads) sums_.push_back(make_sum(statistic));
}

MetricAccumulator::MetricAccumulator(MetricAccumulator&&) noexcept = default;
MetricAccumulator& MetricAccumulator::operator=(MetricAccumulator&&) noexcept = default;
MetricAccumulator::~MetricAccumulator() = default;

void MetricAccumulator::add(const at::Tensor& output, const at::Tensor& target) {
  if (specs_.empty()) return;
  const at::NoGradGuard no_gradients;
  const bool one = slots_ == 0;
  const MetricBatch batch(one ? output.unsqueeze(0) : output, one ? target.unsqueeze(0) : target, kind_, ignore_index_);
  const at::Tensor positions = batch.positions(), nan = batch.has_nan();
  positions_ = positions_.defined() ? positions_ + positions : positions;
  nan_ = nan_.defined() ? nan_.logical_or(nan) : nan;
  for (const auto& sum : sums_) sum->add(batch);
}

std::vector<std::map<std::string, double>> MetricAccumulator::result() const {
  std::vector<std::map<std::string, double>> metrics(static_cast<std::size_t>(std::max(slots_, 1)));
  if (specs_.empty()) return metrics;
  if (!positions_.defined()) throw Error(ErrorKind::kInternal, "metrics: found none, wanted a batch");
  const at::NoGradGuard no_gradients;
  SlotSums fresh;
  fresh.kind = kind_;
  std::vector<SlotSums> slots(metrics.size(), fresh);
  write_rows(positions_, &SlotSums::positions, slots);
  for (const auto& sum : sums_) sum->write(slots);
  const at::Tensor nan = nan_.cpu();
  for (std::size_t b = 0; b < slots.size(); ++b) {
    const bool defined = slots[b].positions > 0 && !nan.data_ptr<bool>()[b];
    for (const MetricSpec& spec : specs_) write_metric(spec, slots[b], defined, metrics[b]);
  }
  return metrics;
}

}  // namespace hfta::fusion
