#include "search/choices.hpp"

#include <algorithm>
#include <vector>

#include "search/ranges.hpp"

namespace hfta::search {

using trials::Distribution;
using trials::DistributionKind;
using trials::ParamValue;

std::vector<ParamValue> possible_values(const Distribution& distribution) {
  if (distribution.probabilities.empty()) return distribution.values;
  std::vector<ParamValue> possible;
  for (std::size_t i = 0; i < distribution.values.size(); ++i) {
    if (distribution.probabilities[i] > 0) possible.push_back(distribution.values[i]);
  }
  return possible;
}

std::optional<Choices> Choices::of(const Distribution& d) {
  if (d.kind == DistributionKind::kConstant || d.kind == DistributionKind::kCategorical) {
    return Choices(d, 0, static_cast<std::int64_t>(d.values.size()));
  }
  if (is_normal(d.kind)) {
    if (d.sigma != 0) return std::nullopt;
    return Choices(d, is_quantized(d.kind) ? nearest_multiple(normal_value(d, 0), d.q) : 0, 1);
  }
  const Interval interval = *interval_of(d);
  if (d.kind == DistributionKind::kIntUniform) {
    const auto first = static_cast<std::int64_t>(d.min);
    return Choices(d, first, static_cast<std::int64_t>(d.max) - first + 1);
  }
  if (is_quantized(d.kind)) {
    const Multiples range = multiples_in(interval.low, interval.high, d.q);
    return Choices(d, range.first, range.last - range.first + 1);
  }
  if (interval.low != interval.high) return std::nullopt;
  return Choices(d, 0, 1);
}

std::int64_t Choices::possible_count() const {
  const std::vector<double>& weights = distribution_.probabilities;
  if (distribution_.kind != DistributionKind::kCategorical || weights.empty()) return count_;
  return std::count_if(weights.begin(), weights.end(), [](double weight) { return weight > 0; });
}

ParamValue Choices::value(std::int64_t i) const {
  const Distribution& d = distribution_;
  if (d.kind == DistributionKind::kConstant || d.kind == DistributionKind::kCategorical) {
    return d.values.at(static_cast<std::size_t>(i));
  }
  if (d.kind == DistributionKind::kIntUniform) return first_ + i;
  if (is_quantized(d.kind)) return multiple(d, first_ + i);
  return is_normal(d.kind) ? normal_value(d, 0) : interval_of(d)->low;
}

double Choices::weight(std::int64_t i) const {
  const Distribution& d = distribution_;
  if (d.kind == DistributionKind::kCategorical) {
    return d.probabilities.empty() ? 1 : d.probabilities.at(static_cast<std::size_t>(i));
  }
  if (count_ == 1 || !is_quantized(d.kind)) return 1;
  const double k = static_cast<double>(first_ + i);
  return interval_of(d)->mass((k - 0.5) * d.q, (k + 0.5) * d.q);
}

}  // namespace hfta::search
