#include "search/completion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.hpp"
#include "base/text.hpp"
#include "search/ranges.hpp"
#include "search/space.hpp"

namespace hfta::search {
namespace {

using trials::Distribution;
using trials::DistributionKind;
using trials::ParamValue;

constexpr double kSlack = 1e-9;  // of a bound or of q: what writing a number down and reading it back may cost

std::optional<double> number_of(const ParamValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&value); real != nullptr && std::isfinite(*real)) return *real;
  return std::nullopt;
}

bool same(const ParamValue& a, const ParamValue& b) {
  if (a.index() == b.index()) return a == b;
  const auto x = number_of(a), y = number_of(b);
  return x && y && *x == *y;
}

std::optional<double> within(const Interval& interval, double x) {
  const double slack = kSlack * std::max(std::abs(interval.low), std::abs(interval.high));
  if (x < interval.low - slack || x > interval.high + slack) return std::nullopt;
  return std::clamp(x, interval.low, interval.high);
}

std::optional<ParamValue> admit_integer(const Interval& interval, const ParamValue& value) {
  constexpr double kTwo63 = 0x1p63;
  const double x = *number_of(value);
  if (x < interval.low || x > interval.high || std::floor(x) != x || x >= kTwo63 || x < -kTwo63) return std::nullopt;
  if (std::holds_alternative<std::int64_t>(value)) return value;  // beyond 2^53 the double is not the same
  return static_cast<std::int64_t>(x);
}

std::optional<ParamValue> admit_multiple(const Distribution& d, double x) {
  constexpr double kMost = 0x1p62;
  if (std::abs(x / d.q) > kMost) return std::nullopt;
  const std::int64_t k = nearest_multiple(x, d.q);
  if (std::abs(x / d.q - static_cast<double>(k)) > kSlack * std::max(1.0, std::abs(static_cast<double>(k)))) {
    return std::nullopt;
  }
  if (const auto interval = interval_of(d)) {
    const Multiples range = multiples_in(interval->low, interval->high, d.q);
    if (k < range.first || k > range.last) return std::nullopt;
  } else if (d.kind == DistributionKind::kQLogNormal && k < 0) {
    return std::nullopt;
  }
  return multiple(d, k);
}

}  // namespace

std::optional<ParamValue> admit(const Distribution& d, const ParamValue& value) {
  if (d.kind == DistributionKind::kConstant || d.kind == DistributionKind::kCategorical) {
    const auto found =
        std::find_if(d.values.begin(), d.values.end(), [&](const auto& own) { return same(own, value); });
    if (found == d.values.end()) return std::nullopt;
    return *found;
  }
  const std::optional<double> x = number_of(value);
  if (!x) return std::nullopt;
  if (is_quantized(d.kind)) return admit_multiple(d, *x);
  const std::optional<Interval> interval = interval_of(d);
  if (d.kind == DistributionKind::kIntUniform) return admit_integer(*interval, value);
  if (interval) {
    const auto inside = within(*interval, *x);
    if (!inside) return std::nullopt;
    return *inside;
  }
  if (d.kind == DistributionKind::kLogNormal && *x <= 0) return std::nullopt;
  return *x;
}

Completion complete(const trials::Space& space, const trials::Params& fixed, std::uint64_t seed, int number) {
  Completion completion;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < space.size(); ++i) {
    const auto& [name, distribution] = space[i];
    names.push_back(name);
    const auto asked =
        std::find_if(fixed.begin(), fixed.end(), [&name = name](const auto& p) { return p.first == name; });
    if (asked == fixed.end()) {
      CountedRandom random(seed, Stream::kEnqueued, static_cast<std::uint64_t>(number), i);
      completion.params.emplace_back(name, sample(distribution, random));
    } else if (auto value = admit(distribution, asked->second)) {
      completion.params.emplace_back(name, std::move(*value));
    } else {
      completion.problem =
          fmt::format("enqueued with {} = {}, wanted a value that its distribution ({}) can give", printable(name),
                      printable(trials::to_text(asked->second)), trials::name_of(distribution.kind));
    }
  }
  for (const auto& [name, value] : fixed) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    completion.problem =
        fmt::format("enqueued with {}, which is no parameter of the study{}", printable(name), suggestion(name, names));
  }
  return completion;
}

}  // namespace hfta::search
