#include "search/ranges.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace hfta::search {
namespace {

using trials::Distribution;
using trials::DistributionKind;

Interval linear(double low, double high) { return {low, high, low, high, false}; }
Interval logarithmic(double low, double high) { return {low, high, std::log(low), std::log(high), true}; }
Interval exponential(double a, double b) { return {std::exp(a), std::exp(b), a, b, true}; }

// A positive number as digits * 10^exponent, the shortest that reads back as it.
struct Decimal {
  double digits = 0;
  int exponent = 0;
};

Decimal decimal(double x) {
  char text[40];
  const char* end = std::to_chars(text, text + sizeof text, x, std::chars_format::scientific).ptr;
  const std::string_view all(text, static_cast<std::size_t>(end - text));
  const std::size_t e = all.find('e');
  char digits[40];
  char* out = std::copy_if(text, text + e, digits, [](char c) { return c != '.'; });
  Decimal result;
  std::from_chars(digits, out, result.digits);
  std::from_chars(text + e + (text[e + 1] == '+' ? 2 : 1), end, result.exponent);
  result.exponent -= static_cast<int>(out - digits) - 1;
  return result;
}

}  // namespace

double Interval::at(double u) const {
  const double x = std::lerp(a, b, u);
  return std::clamp(log ? std::exp(x) : x, low, high);  // exp(log(x)) may miss x by a rounding
}

double Interval::mass(double from, double to) const {
  from = std::max(from, low);
  to = std::min(to, high);
  if (from >= to) return 0;
  return log ? std::log1p((to - from) / from) : to - from;
}

std::optional<Interval> interval_of(const Distribution& d) {
  switch (d.kind) {
    case DistributionKind::kIntUniform:
    case DistributionKind::kUniform:
    case DistributionKind::kQUniform:
      return linear(d.min, d.max);
    case DistributionKind::kLogUniform:
    case DistributionKind::kQLogUniform:
      return exponential(d.min, d.max);
    case DistributionKind::kInvLogUniform:
      return exponential(-d.max, -d.min);
    case DistributionKind::kLogUniformValues:
    case DistributionKind::kQLogUniformValues:
    case DistributionKind::kInvLogUniformValues:  // log(1/x) is uniform exactly where log(x) is
      return logarithmic(d.min, d.max);
    case DistributionKind::kConstant:
    case DistributionKind::kCategorical:
    case DistributionKind::kNormal:
    case DistributionKind::kQNormal:
    case DistributionKind::kLogNormal:
    case DistributionKind::kQLogNormal:
      return std::nullopt;
  }
  return std::nullopt;
}

double normal_value(const Distribution& d, double z) {
  const double x = d.mu + d.sigma * z;
  return is_logarithmic(d.kind) ? std::exp(x) : x;
}

Multiples multiples_in(double low, double high, double q) {
  // A cell that shares less than a billionth of q with the interval is there by rounding only (max 0.95 with q 0.1).
  constexpr double kSlack = 1e-9;
  Multiples range{static_cast<std::int64_t>(std::floor(low / q + 0.5 + kSlack)),
                  static_cast<std::int64_t>(std::ceil(high / q - 0.5 - kSlack))};
  if (range.first > range.last) range.first = range.last = nearest_multiple(low, q);
  return range;
}

std::int64_t nearest_multiple(double x, double q) { return static_cast<std::int64_t>(std::nearbyint(x / q)); }

trials::ParamValue multiple(const Distribution& d, std::int64_t k) {
  if (d.integer) return k * static_cast<std::int64_t>(d.q);
  // Both factors exact and the power of ten too: one correctly rounded division gives the decimal as written.
  const Decimal q = decimal(d.q);
  const double product = static_cast<double>(k) * q.digits;
  if (q.exponent < 0 && q.exponent >= -22 && std::abs(product) < 0x1p53) return product / std::pow(10.0, -q.exponent);
  return static_cast<double>(k) * d.q;
}

trials::ParamValue on_grid(const Distribution& d, const std::optional<Interval>& interval, double x) {
  if (!is_quantized(d.kind)) return x;
  std::int64_t k = nearest_multiple(x, d.q);
  if (interval) {
    const Multiples range = multiples_in(interval->low, interval->high, d.q);
    k = std::clamp(k, range.first, range.last);
  }
  return multiple(d, k);
}

}  // namespace hfta::search
