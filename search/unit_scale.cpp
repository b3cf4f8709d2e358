#include "search/unit_scale.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "search/choices.hpp"
#include "search/ranges.hpp"

namespace hfta::search {
namespace {

using trials::DistributionKind;
using trials::ParamValue;

constexpr double kDeviations = 4;

std::optional<double> number_of(const ParamValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return std::nullopt;
}

}  // namespace

std::optional<UnitScale> UnitScale::of(const trials::Distribution& d) {
  if (d.kind == DistributionKind::kConstant || d.kind == DistributionKind::kCategorical) return std::nullopt;
  const auto choices = Choices::of(d);
  if (choices && choices->count() == 1) return std::nullopt;
  return UnitScale(d);
}

ParamValue UnitScale::at(double u) const {
  const trials::Distribution& d = distribution_;
  u = std::clamp(u, 0.0, 1.0);
  if (d.kind == DistributionKind::kIntUniform) {
    const double count = d.max - d.min + 1;
    return static_cast<std::int64_t>(d.min) + static_cast<std::int64_t>(std::min(std::floor(u * count), count - 1));
  }
  const auto interval = interval_of(d);
  const double x = interval ? interval->at(u) : normal_value(d, kDeviations * (2 * u - 1));
  return on_grid(d, interval, x);
}

// The share of the scale below a number that need not be one of the distribution's values.
double UnitScale::fraction(double value) const {
  const trials::Distribution& d = distribution_;
  double at = 0;
  if (const auto interval = interval_of(d)) {
    const double x = std::clamp(value, interval->low, interval->high);
    // The differences are taken of halves, so that they cannot overflow.
    const double width = interval->b / 2 - interval->a / 2;  // 0: of two numbers beside 0
    if (width > 0) at = ((interval->log ? std::log(x) : x) / 2 - interval->a / 2) / width;
  } else {
    const double exponent = is_logarithmic(d.kind) ? (value > 0 ? std::log(value) : -HUGE_VAL) : value;
    at = ((exponent - d.mu) / d.sigma / kDeviations + 1) / 2;
  }
  return std::clamp(at, 0.0, 1.0);
}

UnitScale::Part UnitScale::part_of(const ParamValue& value) const {
  const trials::Distribution& d = distribution_;
  const std::optional<double> x = number_of(value);
  if (!x) return {0.5, 0.5};
  if (d.kind == DistributionKind::kIntUniform) {
    const double count = d.max - d.min + 1, i = std::clamp(*x - d.min, 0.0, count - 1);
    return {i / count, (i + 1) / count};
  }
  if (!is_quantized(d.kind)) return {fraction(*x), fraction(*x)};
  return {fraction(*x - d.q / 2), fraction(*x + d.q / 2)};
}

}  // namespace hfta::search
