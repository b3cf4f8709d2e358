#pragma once
/// Percentiles.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace hfta {

/// The value below which `percent` % of all lie: between the two nearest ranks, linearly, as numpy.percentile has it.
/// `ascending` is sorted. REQUIRES at least one value, and `percent` in 0..100.
[[nodiscard]] inline double percentile_of(const std::vector<double>& ascending, double percent) {
  const double rank = static_cast<double>(ascending.size() - 1) * percent / 100;
  const auto below = static_cast<std::size_t>(std::floor(rank));
  const std::size_t above = std::min(below + 1, ascending.size() - 1);
  return std::lerp(ascending[below], ascending[above], rank - std::floor(rank));
}

}  // namespace hfta
