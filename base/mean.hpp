#pragma once
/// Means.

#include <cmath>
#include <numeric>
#include <span>

namespace hfta {

/// The mean of `values`, at least one. Where the sum of huge values is no number, that of their shares is one.
[[nodiscard]] inline double mean_of(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  if (std::isfinite(sum)) return sum / n;
  return std::accumulate(values.begin(), values.end(), 0.0,
                         [n](double shares, double value) { return shares + value / n; });
}

}  // namespace hfta
