#include "search/explore.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "search/ranges.hpp"

namespace hfta::search {
namespace {

using trials::Distribution;
using trials::DistributionKind;
using trials::ParamValue;

constexpr double kUp = 1.2, kDown = 0.8;

ParamValue neighbour(const Distribution& d, const ParamValue& value, bool up) {
  const auto at = std::find(d.values.begin(), d.values.end(), value) - d.values.begin();
  const auto count = static_cast<std::ptrdiff_t>(d.values.size());
  for (std::ptrdiff_t i = at + (up ? 1 : -1); i >= 0 && i < count; i += up ? 1 : -1) {
    const auto index = static_cast<std::size_t>(i);
    if (d.probabilities.empty() || d.probabilities[index] > 0) return d.values[index];
  }
  return value;
}

}  // namespace

ParamValue moved(const Distribution& d, const ParamValue& value, bool up) {
  if (d.kind == DistributionKind::kConstant) return value;
  if (d.kind == DistributionKind::kCategorical) return neighbour(d, value, up);
  const auto* integer = std::get_if<std::int64_t>(&value);
  const auto* real = std::get_if<double>(&value);
  if (integer == nullptr && real == nullptr) return value;
  double x = (integer != nullptr ? static_cast<double>(*integer) : *real) * (up ? kUp : kDown);
  const std::optional<Interval> interval = interval_of(d);
  if (is_quantized(d.kind)) return on_grid(d, interval, x);
  if (interval) x = std::clamp(x, interval->low, interval->high);
  if (d.kind == DistributionKind::kIntUniform) return static_cast<std::int64_t>(std::nearbyint(x));
  return x;
}

}  // namespace hfta::search
