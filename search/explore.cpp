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

// The distance of the distribution's values; 0: they are not apart.
double step_of(const Distribution& d) {
  if (is_quantized(d.kind)) return d.q;
  return d.kind == DistributionKind::kIntUniform ? 1 : 0;
}

// The distribution's value that is nearest to x.
ParamValue put_back(const Distribution& d, double x) {
  const std::optional<Interval> interval = interval_of(d);
  if (is_quantized(d.kind)) return on_grid(d, interval, x);
  if (interval) x = std::clamp(x, interval->low, interval->high);
  if (d.kind == DistributionKind::kIntUniform) return static_cast<std::int64_t>(std::nearbyint(x));
  return x;
}

}  // namespace

ParamValue moved(const Distribution& d, const ParamValue& value, bool up) {
  if (d.kind == DistributionKind::kConstant) return value;
  if (d.kind == DistributionKind::kCategorical) return neighbour(d, value, up);
  const auto* integer = std::get_if<std::int64_t>(&value);
  const auto* real = std::get_if<double>(&value);
  if (integer == nullptr && real == nullptr) return value;
  const double from = integer != nullptr ? static_cast<double>(*integer) : *real;
  const double factor = up ? kUp : kDown;
  ParamValue there = put_back(d, from * factor);
  const double step = step_of(d);
  if (step == 0 || !(there == value)) return there;
  return put_back(d, from + (up == (from >= 0) ? step : -step));  // a small number of steps was rounded back
}

}  // namespace hfta::search
