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
using trials::Params;
using trials::ParamValue;
using trials::Space;

constexpr std::uint64_t kMostAttempts = 10'000;

constexpr double kSlack = 1e-9;  // relative tolerance: what writing a number down and reading it back may change

std::optional<double> number_of(const ParamValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&value); real != nullptr && std::isfinite(*real)) return *real;
  return std::nullopt;
}

// Compares values as Python does: 1, 1.0 and True are equal.
bool same(const ParamValue& a, const ParamValue& b) {
  if (a.index() == b.index()) return a == b;
  const auto number = [](const ParamValue& value) {
    const bool* flag = std::get_if<bool>(&value);
    return flag != nullptr ? std::optional<double>(*flag ? 1 : 0) : number_of(value);
  };
  const auto x = number(a), y = number(b);
  return x && y && *x == *y;
}

bool is_listed(const Distribution& d) {
  return d.kind == DistributionKind::kConstant || d.kind == DistributionKind::kCategorical;
}

// The value for a message, which says so if it is a text where a number is wanted.
std::string asked_text(const Distribution& d, const ParamValue& value) {
  const std::string text = excerpt(trials::to_text(value));
  const bool same_words = std::any_of(d.values.begin(), d.values.end(), [&](const ParamValue& own) {
    return own.index() != value.index() && trials::to_text(own) == trials::to_text(value);
  });
  return std::holds_alternative<std::string>(value) && (!is_listed(d) || same_words) ? "the text '" + text + "'" : text;
}

std::optional<double> within(const Interval& interval, double x) {
  const bool below = x < interval.low - kSlack * std::abs(interval.low);
  const bool above = x > interval.high + kSlack * std::abs(interval.high);
  if (below || above) return std::nullopt;
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

// The values of `fixed` as the space has them; `problem` says what is wrong with others.
Params admitted(const Space& space, const Params& fixed, std::string& problem) {
  Params given;
  std::vector<std::string> names;
  for (const auto& [name, distribution, when] : space) {
    names.push_back(name);
    const ParamValue* asked = trials::find_value(fixed, name);
    if (asked == nullptr) continue;
    if (auto value = admit(distribution, *asked)) {
      given.emplace_back(name, std::move(*value));
    } else {
      problem = fmt::format("enqueued with {} = {}, wanted a value that its distribution ({}) can give",
                            printable(name), asked_text(distribution, *asked), trials::name_of(distribution.kind));
    }
  }
  for (const auto& [name, value] : fixed) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    problem =
        fmt::format("enqueued with {}, which is no parameter of the study{}", printable(name), suggestion(name, names));
  }
  return given;
}

// The given values, and a draw of each other parameter.
Params drawn(const Space& space, const Params& given, std::uint64_t seed, int number, std::uint64_t attempt) {
  Params all;
  for (std::size_t i = 0; i < space.size(); ++i) {
    const ParamValue* value = trials::find_value(given, space[i].name);
    CountedRandom random(seed, Stream::kEnqueued, static_cast<std::uint64_t>(number), (attempt << 32) + i);
    all.emplace_back(space[i].name, value != nullptr ? *value : sample(space[i].distribution, random));
  }
  return trials::applying(space, all);
}

// Whether a draw has all that was given: a parameter with conditions applies beside some values of others only.
bool has_all(const Params& params, const Params& given) {
  return std::all_of(given.begin(), given.end(),
                     [&](const auto& one) { return trials::find_value(params, one.first) != nullptr; });
}

}  // namespace

std::optional<ParamValue> admit(const Distribution& d, const ParamValue& value) {
  if (is_listed(d)) {
    auto found = std::find(d.values.begin(), d.values.end(), value);
    if (found == d.values.end()) {
      found = std::find_if(d.values.begin(), d.values.end(), [&](const auto& own) { return same(own, value); });
    }
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

Completion complete(const Space& space, const Params& fixed, std::uint64_t seed, int number,
                    const std::vector<Constraint>& constraints) {
  std::string problem;
  const Params given = admitted(space, fixed, problem);
  if (!problem.empty()) return {{}, problem};
  Params params = drawn(space, given, seed, number, 0);
  const auto fits = [&](const Params& all) { return has_all(all, given) && !broken(constraints, all); };
  std::optional<Params> whole;  // a draw with all that is given, which constraints alone exclude
  for (std::uint64_t attempt = 1; attempt < kMostAttempts && !fits(params); ++attempt) {
    if (has_all(params, given)) whole = params;
    params = drawn(space, given, seed, number, attempt);
  }
  if (fits(params)) return {std::move(params)};
  if (whole) params = std::move(*whole);
  for (const auto& [name, value] : given) {
    if (trials::find_value(params, name) != nullptr) continue;
    return {{}, fmt::format("enqueued with {}, which does not apply beside its other parameters", printable(name))};
  }
  return {{}, fmt::format("enqueued against the constraint '{}'", printable(broken(constraints, params)->text()))};
}

}  // namespace hfta::search
