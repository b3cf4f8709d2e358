#pragma once
/// Means.

#include <cmath>
#include <numeric>
#include <span>

namespace hfta {

/// The mean of `values`, at least one; of equal values it is exactly their value. Where the sum of huge values is not
/// finite, the values are divided by their number before they are added.
[[nodiscard]] inline double mean_of(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  const double first = values.front();
  const double beyond = std::accumulate(values.begin(), values.end(), 0.0,
                                        [first](double sum, double value) { return sum + (value - first); });
  if (std::isfinite(beyond)) return first + beyond / n;
  return std::accumulate(values.begin(), values.end(), 0.0,
                         [n](double shares, double value) { return shares + value / n; });
}

}  // namespace hfta
