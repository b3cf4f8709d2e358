#include "storage/optuna_encoding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "base/text.hpp"
#include "storage/json.hpp"

namespace hfta::storage {
namespace {

using nlohmann::json;
using trials::Distribution;
using trials::DistributionKind;
using trials::ParamValue;
using Kind = OptunaDistribution::Kind;

constexpr double kMax = std::numeric_limits<double>::max();
constexpr double kTwo53 = 9007199254740992.0;  // beyond it a double skips integers
constexpr double kTwo63 = 9223372036854775808.0;
// A normal made of 53-bit uniforms (Box-Muller) never exceeds sqrt(-2 ln 2^-53) = 8.6 sigma.
constexpr double kSigmas = 10;

struct Range {
  double low, high;
};

/// The range of the continuous variable, before rounding to q.
Range continuous_range(const Distribution& d) {
  switch (d.kind) {
    case DistributionKind::kLogUniform:
    case DistributionKind::kQLogUniform:
      return {std::exp(d.min), std::exp(d.max)};
    case DistributionKind::kInvLogUniform:
      return {std::exp(-d.max), std::exp(-d.min)};
    case DistributionKind::kNormal:
    case DistributionKind::kQNormal:
      return {d.mu - kSigmas * d.sigma, d.mu + kSigmas * d.sigma};
    case DistributionKind::kLogNormal:
    case DistributionKind::kQLogNormal:
      return {std::exp(d.mu - kSigmas * d.sigma), std::exp(d.mu + kSigmas * d.sigma)};
    default:
      return {d.min, d.max};
  }
}

/// The greatest multiple of q at or below `value`, forgiving what a division like 0.3 / 0.1 leaves over.
double multiple_below(double value, double q) {
  const double ratio = value / q, nearest = std::round(ratio);
  const bool whole = std::abs(ratio - nearest) <= 1e-9 * std::max(1.0, std::abs(ratio));
  return (whole ? nearest : std::floor(ratio)) * q;
}

bool is_multiple(double value, double q) { return std::fmod(value, q) == 0; }

OptunaDistribution bounded(const Distribution& d) {
  OptunaDistribution out;
  const bool whole = d.kind == DistributionKind::kIntUniform || (is_quantized(d.kind) && d.integer);
  out.kind = whole ? Kind::kInt : Kind::kFloat;
  Range range = continuous_range(d);
  if (is_quantized(d.kind)) {
    // Rounding to a multiple of q may leave the range; which way a half goes is not decided here.
    range = {std::min(range.low, multiple_below(range.low, d.q)),
             std::max(range.high, -multiple_below(-range.high, d.q))};
  }
  if (whole) range = {std::floor(range.low), std::ceil(range.high)};
  const double limit = whole ? kTwo63 : kMax;
  out.low = std::clamp(range.low, -limit, limit);
  out.high = std::clamp(range.high, -limit, limit);
  out.log = is_logarithmic(d.kind) && out.low >= (whole ? 1.0 : std::numeric_limits<double>::denorm_min());
  const bool grid = whole && is_quantized(d.kind) && !out.log && d.q >= 1 && std::max(-out.low, out.high) <= kTwo53;
  if (grid && is_multiple(out.low, d.q) && is_multiple(out.high, d.q) && is_multiple(d.q, 1)) out.step = d.q;
  return out;
}

/// A whole double as a JSON integer; 2^63 needs the unsigned type.
json whole_json(double value) {
  if (value >= kTwo63) return static_cast<std::uint64_t>(value);
  return static_cast<std::int64_t>(value);
}

std::string distribution_json(const OptunaDistribution& d) {
  if (d.kind == Kind::kCategorical) {
    json choices = json::array();
    for (const ParamValue& choice : d.choices) choices.push_back(param_to_json(choice));
    return dump({{"name", "CategoricalDistribution"}, {"attributes", {{"choices", std::move(choices)}}}});
  }
  if (d.kind == Kind::kInt) {
    return dump(
        {{"name", "IntDistribution"},
         {"attributes",
          {{"log", d.log}, {"step", whole_json(d.step)}, {"low", whole_json(d.low)}, {"high", whole_json(d.high)}}}});
  }
  return dump({{"name", "FloatDistribution"},
               {"attributes", {{"step", nullptr}, {"low", d.low}, {"high", d.high}, {"log", d.log}}}});
}

[[noreturn]] void misfit(const ParamValue& value, const char* wanted) {
  throw Error(ErrorKind::kInternal, fmt::format("found {}, wanted {}", printable(trials::to_text(value)), wanted));
}

std::size_t choice_index(const std::vector<ParamValue>& choices, const ParamValue& value) {
  const auto found = std::find(choices.begin(), choices.end(), value);
  if (found == choices.end()) misfit(value, "one of the parameter's choices");
  return static_cast<std::size_t>(found - choices.begin());
}

double number_of(const OptunaDistribution& d, const ParamValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return static_cast<double>(*integer);
  const auto* real = std::get_if<double>(&value);
  if (real == nullptr || !std::isfinite(*real)) misfit(value, "a finite number");
  if (d.kind == Kind::kInt && *real != std::trunc(*real)) misfit(value, "an integer");
  return *real;
}

/// Whether decode() gives back this very value: not an integer beyond 2^53, nor one where Optuna holds a float, nor
/// minus zero, whose sign SQLite drops.
bool is_exact(const OptunaDistribution& d, const ParamValue& value, double number) {
  const bool integer = std::holds_alternative<std::int64_t>(value);
  return integer == (d.kind == Kind::kInt) && (!integer || std::abs(number) < kTwo53) &&
         (number != 0 || !std::signbit(number));
}

}  // namespace

OptunaDistribution to_optuna(const Distribution& distribution) {
  if (distribution.kind != DistributionKind::kConstant && distribution.kind != DistributionKind::kCategorical) {
    return bounded(distribution);
  }
  OptunaDistribution out;
  out.choices = distribution.values;
  for (const ParamValue& choice : out.choices) {
    const auto* real = std::get_if<double>(&choice);
    if (real != nullptr && !std::isfinite(*real)) misfit(choice, "finite numbers as choices");
  }
  return out;
}

EncodedParam encode(const OptunaDistribution& distribution, const ParamValue& value) {
  if (distribution.kind == Kind::kCategorical) {
    const std::size_t index = choice_index(distribution.choices, value);
    return {static_cast<double>(index), distribution_json(distribution), true};
  }
  const double number = number_of(distribution, value);
  const bool exact = is_exact(distribution, value, number);
  if (number >= distribution.low && number <= distribution.high)
    return {number, distribution_json(distribution), exact};
  // Optuna lets the range of a name differ between trials, but not its log flag, under which 0 has no place.
  OptunaDistribution widened = distribution;
  widened.step = 1;
  if (!distribution.log || number > 0) {
    widened.low = std::min(distribution.low, number);
    widened.high = std::max(distribution.high, number);
  }
  return {number, distribution_json(widened), exact};
}

ParamValue decode(const OptunaDistribution& distribution, double value) {
  const auto refuse = [&](const char* wanted) {
    throw Error(ErrorKind::kStorage, fmt::format("param_value: found {}, wanted {}", shortest(value), wanted));
  };
  switch (distribution.kind) {
    case Kind::kFloat:
      return value;
    case Kind::kInt:
      if (!(std::abs(value) <= kTwo63)) refuse("a 64-bit integer");
      if (value >= kTwo63) return std::numeric_limits<std::int64_t>::max();
      return static_cast<std::int64_t>(value);
    case Kind::kCategorical:
      break;
  }
  if (!(value >= 0 && value < static_cast<double>(distribution.choices.size()))) refuse("the index of a choice");
  return distribution.choices[static_cast<std::size_t>(value)];
}

OptunaDistribution parse_distribution(const std::string& text) {
  const json object = parse(text, "distribution_json");
  try {
    OptunaDistribution out;
    const auto name = object.at("name").get<std::string>();
    const json& attributes = object.at("attributes");
    if (name == "CategoricalDistribution") {
      for (const json& choice : attributes.at("choices")) out.choices.push_back(param_from_json(choice));
      return out;
    }
    // IntDistribution, IntUniform..., IntLogUniform...; Float..., Uniform..., LogUniform..., DiscreteUniform...
    const bool known =
        name.find("Uniform") != std::string::npos || name == "FloatDistribution" || name == "IntDistribution";
    if (!known)
      throw Error(ErrorKind::kStorage,
                  fmt::format("distribution_json: found '{}', wanted one of Optuna's", printable(name)));
    out.kind = name.rfind("Int", 0) == 0 ? Kind::kInt : Kind::kFloat;
    out.low = attributes.at("low").get<double>();
    out.high = attributes.at("high").get<double>();
    out.log = attributes.value("log", name.find("Log") != std::string::npos);
    return out;
  } catch (const json::exception& error) {
    throw Error(ErrorKind::kStorage,
                fmt::format("distribution_json: found JSON of another form ({})", printable(error.what())));
  }
}

StoredNumber to_columns(double value) {
  if (std::isnan(value)) return {std::nullopt, "NAN"};
  if (std::isinf(value)) return {std::nullopt, value > 0 ? "INF_POS" : "INF_NEG"};
  return {value, "FINITE"};
}

double from_columns(double value, std::string_view type) {
  if (type == "FINITE") return value;
  if (type == "NAN") return std::numeric_limits<double>::quiet_NaN();
  if (type == "INF_POS") return std::numeric_limits<double>::infinity();
  if (type == "INF_NEG") return -std::numeric_limits<double>::infinity();
  throw Error(ErrorKind::kStorage,
              fmt::format("value_type: found '{}', wanted FINITE, INF_POS, INF_NEG or NAN", printable(type)));
}

std::string unnamed_metric(std::size_t objective) {
  return objective == 0 ? "value" : fmt::format("value_{}", objective);
}

}  // namespace hfta::storage
