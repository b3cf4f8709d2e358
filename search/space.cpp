#include "search/space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <set>
#include <string>
#include <variant>

#include "base/error.hpp"
#include "base/text.hpp"
#include "search/choices.hpp"
#include "search/ranges.hpp"

namespace hfta::search {
namespace {

using trials::Distribution;
using trials::DistributionKind;
using trials::ParamValue;

constexpr std::int64_t kMostListed = 1'000'000;
constexpr double kMostExponent = 700;  // e^700 is near the largest double
constexpr double kExact = 0x1p53;      // up to here a double holds every integer

[[noreturn]] void reject(const char* key, const std::string& found, const std::string& wanted) {
  throw Error(ErrorKind::kConfig, fmt::format("{}: found {}, wanted {}", key, found, wanted));
}

void require(bool ok, const char* key, double found, const std::string& wanted) {
  if (!ok) reject(key, shortest(found), wanted);
}

// 1 and 1.0 are the same choice; true and 1 are not.
bool same(const ParamValue& a, const ParamValue& b) {
  const auto number = [](const ParamValue& v) -> std::optional<double> {
    if (const auto* i = std::get_if<std::int64_t>(&v)) return static_cast<double>(*i);
    if (const auto* d = std::get_if<double>(&v)) return *d;
    return std::nullopt;
  };
  if (a == b) return true;
  if (a.index() == b.index()) return false;  // integers too large for a double differ as integers
  const auto x = number(a), y = number(b);
  return x && y && *x == *y;
}

void validate_values(const Distribution& d) {
  const bool constant = d.kind == DistributionKind::kConstant;
  const char* key = constant ? "value" : "values";
  if (d.values.empty()) reject(key, "none", constant ? "one value" : "at least one value");
  if (constant && d.values.size() > 1) reject(key, fmt::format("{} values", d.values.size()), "one value");
  for (std::size_t i = 0; i < d.values.size(); ++i) {
    const auto* number = std::get_if<double>(&d.values[i]);
    if (number != nullptr) require(std::isfinite(*number), key, *number, "a finite number");
    for (std::size_t j = 0; j < i; ++j) {
      if (!same(d.values[i], d.values[j])) continue;
      reject(key, excerpt(trials::to_text(d.values[i])) + " twice",
             "each value once (`probabilities` make one come sooner)");
    }
  }
}

void validate_probabilities(const Distribution& d) {
  if (d.probabilities.empty()) return;
  if (d.probabilities.size() != d.values.size()) {
    reject("probabilities", fmt::format("{} of them", d.probabilities.size()),
           fmt::format("one for each of the {} values", d.values.size()));
  }
  for (const double p : d.probabilities) {
    require(std::isfinite(p) && p >= 0, "probabilities", p, "numbers of at least 0");
  }
  const double sum = std::accumulate(d.probabilities.begin(), d.probabilities.end(), 0.0);
  if (std::abs(sum - 1) > 1e-6) reject("probabilities", "the sum " + shortest(sum), "the sum 1");
}

void validate_range(const Distribution& d) {
  require(std::isfinite(d.min), "min", d.min, "a finite number");
  require(std::isfinite(d.max), "max", d.max, "a finite number");
  require(d.min <= d.max, "min", d.min, "at most max = " + shortest(d.max));
  switch (d.kind) {
    case DistributionKind::kIntUniform:
      for (const auto& [key, x] : {std::pair{"min", d.min}, std::pair{"max", d.max}}) {
        require(x == std::floor(x) && std::abs(x) <= kExact, key, x, "an integer between -2^53 and 2^53");
      }
      break;
    case DistributionKind::kLogUniform:
    case DistributionKind::kQLogUniform:
    case DistributionKind::kInvLogUniform:
      for (const auto& [key, x] : {std::pair{"min", d.min}, std::pair{"max", d.max}}) {
        require(std::abs(x) <= kMostExponent, key, x, "an exponent of e between -700 and 700");
      }
      break;
    case DistributionKind::kLogUniformValues:
    case DistributionKind::kQLogUniformValues:
    case DistributionKind::kInvLogUniformValues:
      require(d.min > 0, "min", d.min, "more than 0 (the distribution is logarithmic)");
      break;
    default:
      break;
  }
}

void validate_normal(const Distribution& d) {
  require(std::isfinite(d.mu), "mu", d.mu, "a finite number");
  require(std::isfinite(d.sigma) && d.sigma >= 0, "sigma", d.sigma, "a finite number of at least 0");
  const double reach = std::abs(d.mu) + kNormalReach * d.sigma;
  const bool log = is_logarithmic(d.kind);
  if (log)
    require(reach <= kMostExponent, "sigma", d.sigma, "|mu| + 8.6 sigma of at most 700 (it is an exponent of e)");
  require(std::isfinite(reach), "sigma", d.sigma, "mu + 8.6 sigma that is a finite number");
}

// Multiples of q must be countable, and exact where they are given as integers.
void validate_q(const Distribution& d) {
  require(std::isfinite(d.q) && d.q > 0, "q", d.q, "a finite number above 0");
  double reach = 0;
  if (const auto interval = interval_of(d)) {
    reach = std::max(std::abs(interval->low), std::abs(interval->high));
  } else {
    reach = std::max(std::abs(normal_value(d, -kNormalReach)), std::abs(normal_value(d, kNormalReach)));
  }
  require(reach / d.q < kExact, "q", d.q, fmt::format("more than {}, 2^-53 of the largest value", reach / kExact));
  require(std::isfinite(reach + d.q), "q", d.q, "multiples that are finite numbers");
  if (!d.integer) return;
  require(d.q == std::floor(d.q), "q", d.q, "an integer");
  require(reach + d.q < kExact, "q", d.q, "integers below 2^53");
}

// u: from 0 to 1.
ParamValue weighted(const Distribution& d, double u) {
  u *= std::accumulate(d.probabilities.begin(), d.probabilities.end(), 0.0);
  double below = 0;
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < d.values.size(); ++i) {
    if (d.probabilities[i] == 0) continue;
    chosen = i;  // the last possible one also takes what rounding leaves over
    below += d.probabilities[i];
    if (u < below) break;
  }
  return d.values[chosen];
}

std::int64_t of_equal_shares(double u, std::int64_t count) {
  return std::min(static_cast<std::int64_t>(u * static_cast<double>(count)), count - 1);
}

}  // namespace

void validate(const Distribution& d) {
  if (d.kind == DistributionKind::kConstant || d.kind == DistributionKind::kCategorical) {
    validate_values(d);
    if (d.kind == DistributionKind::kCategorical) validate_probabilities(d);
    return;
  }
  if (is_normal(d.kind)) {
    validate_normal(d);
  } else {
    validate_range(d);
  }
  if (is_quantized(d.kind)) validate_q(d);
}

void validate(const trials::Space& space) {
  std::set<std::string> names;
  for (const trials::Parameter& parameter : space) {
    try {
      validate(parameter.distribution);
    } catch (const Error& error) {
      throw Error(error.kind(), fmt::format("{}: {}", parameter.name, error.what()));
    }
    if (!names.insert(parameter.name).second) reject(parameter.name.c_str(), "it twice", "each name once");
    for (const trials::Condition& condition : parameter.when) {
      const bool there = std::any_of(space.begin(), space.end(),
                                     [&](const trials::Parameter& other) { return other.name == condition.parameter; });
      if (!there) {
        reject(parameter.name.c_str(), fmt::format("a condition on '{}'", condition.parameter),
               "one on a parameter of the space");
      }
    }
  }
  if (const std::vector<std::string> circle = in_circles(space); !circle.empty()) {
    reject(circle.front().c_str(), "conditions in a circle", "none that depends on itself");
  }
}

std::vector<std::string> in_circles(const trials::Space& space) {
  std::vector<const trials::Parameter*> left;
  for (const trials::Parameter& parameter : space) left.push_back(&parameter);
  for (bool any = true; any;) {
    std::set<std::string> before;
    for (const trials::Parameter* parameter : left) before.insert(parameter->name);
    const auto settled = [&](const trials::Parameter* parameter) {
      return std::none_of(parameter->when.begin(), parameter->when.end(),
                          [&](const trials::Condition& one) { return before.contains(one.parameter); });
    };
    any = std::erase_if(left, settled) > 0;
  }
  std::vector<std::string> names;
  names.reserve(left.size());
  for (const trials::Parameter* parameter : left) names.push_back(parameter->name);
  return names;
}

ParamValue sample(const Distribution& d, CountedRandom& random) {
  switch (d.kind) {
    case DistributionKind::kConstant:
      return d.values.front();
    case DistributionKind::kCategorical:
      if (d.probabilities.empty()) return d.values[random.below(d.values.size())];
      return weighted(d, random.uniform());
    case DistributionKind::kIntUniform: {
      const auto low = static_cast<std::int64_t>(d.min), high = static_cast<std::int64_t>(d.max);
      return low + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(high - low) + 1));
    }
    default:
      break;
  }
  const auto interval = interval_of(d);
  const double x = interval ? interval->at(random.uniform()) : normal_value(d, random.normal());
  return on_grid(d, interval, x);
}

ParamValue quantile(const Distribution& d, double u) {
  u = std::clamp(u, 0.0, 1.0);
  switch (d.kind) {
    case DistributionKind::kConstant:
      return d.values.front();
    case DistributionKind::kCategorical:
      if (!d.probabilities.empty()) return weighted(d, u);
      return d.values[static_cast<std::size_t>(of_equal_shares(u, static_cast<std::int64_t>(d.values.size())))];
    case DistributionKind::kIntUniform: {
      const auto low = static_cast<std::int64_t>(d.min);
      return low + of_equal_shares(u, static_cast<std::int64_t>(d.max) - low + 1);
    }
    default:
      break;
  }
  const auto interval = interval_of(d);
  if (interval) return on_grid(d, interval, interval->at(u));
  const double least = std::numeric_limits<double>::epsilon() / 4;
  const double z = std::numbers::sqrt2 * boost::math::erf_inv(2 * std::clamp(u, least, 1 - 2 * least) - 1);
  return on_grid(d, interval, normal_value(d, std::clamp(z, -kNormalReach, kNormalReach)));
}

std::optional<std::vector<ParamValue>> enumerate(const Distribution& d) {
  const auto choices = Choices::of(d);
  if (!choices || choices->count() > kMostListed) return std::nullopt;
  std::vector<ParamValue> values;
  values.reserve(static_cast<std::size_t>(choices->count()));
  for (std::int64_t i = 0; i < choices->count(); ++i) values.push_back(choices->value(i));
  return values;
}

std::vector<ParamValue> extremes(const Distribution& d) {
  if (d.kind == DistributionKind::kConstant || d.kind == DistributionKind::kCategorical) return d.values;
  if (const auto choices = Choices::of(d)) {
    if (choices->count() == 1) return {choices->value(0)};
    return {choices->value(0), choices->value(choices->count() - 1)};
  }
  if (const auto interval = interval_of(d)) return {interval->low, interval->high};
  const double low = normal_value(d, -4), high = normal_value(d, 4);
  if (!is_quantized(d.kind)) return {low, high};
  return {multiple(d, nearest_multiple(low, d.q)), multiple(d, nearest_multiple(high, d.q))};
}

}  // namespace hfta::search
