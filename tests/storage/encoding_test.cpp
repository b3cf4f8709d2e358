/// Distributions and values in Optuna's words.
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "storage/json.hpp"
#include "storage/optuna_encoding.hpp"
#include "tests/storage/checks.hpp"
#include "tests/storage/samples.hpp"

namespace hfta::storage::testing {
namespace {

using nlohmann::json;
using trials::Distribution;
using trials::DistributionKind;
using trials::ParamValue;
using K = DistributionKind;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct DistributionCase {
  K kind;
  double min, max, q;
  bool integer;
  std::string wanted;  // Optuna's JSON for the value `min`
};

std::string floats(const std::string& low, const std::string& high, bool log) {
  return R"({"attributes":{"high":)" + high + R"(,"log":)" + (log ? "true" : "false") + R"(,"low":)" + low +
         R"(,"step":null},"name":"FloatDistribution"})";
}

std::string ints(const std::string& low, const std::string& high, bool log, const std::string& step) {
  return R"({"attributes":{"high":)" + high + R"(,"log":)" + (log ? "true" : "false") + R"(,"low":)" + low +
         R"(,"step":)" + step + R"(},"name":"IntDistribution"})";
}

TEST_CASE("encoding: each kind becomes the Optuna distribution that contains it", "[encoding]") {
  const DistributionCase c = GENERATE(values<DistributionCase>({
      {K::kUniform, 0, 0.7, 1, false, floats("0.0", "0.7", false)},
      {K::kUniform, 1e-5, 1e300, 1, false, floats("1e-05", "1e+300", false)},
      {K::kIntUniform, 1, 8, 1, false, ints("1", "8", false, "1")},
      {K::kIntUniform, -9223372036854775808.0, 9223372036854775808.0, 1, false,
       ints("-9223372036854775808", "9223372036854775808", false, "1")},
      {K::kLogUniformValues, 1e-4, 1, 1, false, floats("0.0001", "1.0", true)},
      {K::kLogUniform, 0, 0, 1, false, floats("1.0", "1.0", true)},
      {K::kInvLogUniformValues, 0.125, 0.5, 1, false, floats("0.125", "0.5", true)},
      {K::kQUniform, 0.3, 0.9, 0.1, false, floats("0.3", "0.9", false)},
      {K::kQUniform, 0.3, 0.8, 0.5, false, floats("0.0", "1.0", false)},
      {K::kQUniform, 16, 128, 16, true, ints("16", "128", false, "16")},
      {K::kQUniform, 10, 128, 16, true, ints("0", "128", false, "16")},
      {K::kQUniform, -32, 40, 16, true, ints("-32", "48", false, "16")},
      {K::kQUniform, 1, 10, 2.5, false, floats("0.0", "10.0", false)},
      {K::kQLogUniformValues, 8, 512, 8, true, ints("8", "512", true, "1")},
      {K::kQLogUniformValues, 1, 512, 8, true, ints("0", "512", false, "8")},
      {K::kQLogUniformValues, 0.5, 8, 0.5, false, floats("0.5", "8.0", true)},
  }));
  Distribution d;
  d.kind = c.kind;
  d.min = c.min;
  d.max = c.max;
  d.q = c.q;
  d.integer = c.integer;
  const OptunaDistribution optuna = to_optuna(d);
  // A value inside: the middle, made whole for integers.
  const bool whole = optuna.kind == OptunaDistribution::Kind::kInt;
  const double middle = whole ? std::trunc(optuna.low / 2 + optuna.high / 2) : optuna.low / 2 + optuna.high / 2;
  const ParamValue value = whole ? ParamValue(static_cast<std::int64_t>(middle)) : ParamValue(middle);
  CHECK(json::parse(encode(optuna, value).distribution_json) == json::parse(c.wanted));
}

TEST_CASE("encoding: unbounded kinds are given bounds no draw can pass", "[encoding]") {
  Distribution d;
  d.mu = 2;
  d.sigma = 0.5;
  for (const K kind : {K::kNormal, K::kQNormal, K::kLogNormal, K::kQLogNormal}) {
    d.kind = kind;
    d.q = 0.25;
    const OptunaDistribution optuna = to_optuna(d);
    const bool log = kind == K::kLogNormal || kind == K::kQLogNormal;
    const double low = d.mu - 8.6 * d.sigma, high = d.mu + 8.6 * d.sigma;
    INFO(trials::name_of(kind));
    CHECK(optuna.low <= (log ? std::exp(low) : low));
    CHECK(optuna.high >= (log ? std::exp(high) : high));
    CHECK(std::isfinite(optuna.high - optuna.low));
  }
  d.kind = K::kLogNormal;  // exp overflows and underflows
  d.sigma = 400;
  const OptunaDistribution wide = to_optuna(d);
  CHECK(wide.low == 0);
  CHECK(wide.high == std::numeric_limits<double>::max());
  CHECK_FALSE(wide.log);
  d.kind = K::kQLogNormal;
  d.integer = true;
  d.q = 1;
  CHECK(to_optuna(d).high == 9223372036854775808.0);
}

TEST_CASE("encoding: a value that rounding put outside widens the stored range, not the kind", "[encoding]") {
  Distribution d;
  d.kind = K::kLogUniformValues;
  d.min = 1e-4;
  d.max = 0.1;
  const double outside = std::nextafter(0.1, 1);
  const EncodedParam encoded = encode(to_optuna(d), outside);
  const OptunaDistribution read = parse_distribution(encoded.distribution_json);
  CHECK(read.high == outside);
  CHECK(read.low == 1e-4);
  CHECK(read.log);
  CHECK(encoded.value == outside);
}

TEST_CASE("encoding: every value of every kind decodes to itself, or says that it does not", "[encoding]") {
  const int trial = GENERATE(range(0, kSampleTrials));
  const trials::Space space = every_kind();
  const trials::Params params = params_of(trial);
  for (std::size_t i = 0; i < space.size(); ++i) {
    INFO(space[i].name << " = " << trials::to_text(params[i].second));
    const EncodedParam encoded = encode(to_optuna(space[i].distribution), params[i].second);
    const OptunaDistribution read = parse_distribution(encoded.distribution_json);
    const ParamValue decoded = decode(read, encoded.value);
    if (encoded.exact) {
      CHECK(decoded.index() == params[i].second.index());
      CHECK((decoded == params[i].second));
    }
    if (read.kind != OptunaDistribution::Kind::kCategorical) {
      CHECK(encoded.value >= read.low);
      CHECK(encoded.value <= read.high);
      const json attributes = json::parse(encoded.distribution_json)["attributes"];
      // Optuna's rule for steps; values beyond 2^53 have none.
      if (attributes["step"].is_number() && attributes["step"] != 1) {
        CHECK(std::fmod(encoded.value - read.low, attributes["step"].get<double>()) == 0);
        CHECK(std::fmod(read.high - read.low, attributes["step"].get<double>()) == 0);
      }
    }
  }
}

TEST_CASE("encoding: exactness is told", "[encoding]") {
  Distribution whole, real;
  whole.kind = K::kIntUniform;
  whole.min = -1e19;
  whole.max = 1e19;
  real.kind = K::kUniform;
  real.min = -1;
  real.max = 2;
  const std::pair<std::int64_t, bool> integers[] = {
      {0, true},          {-7, true},        {9007199254740991, true}, {9007199254740993, false},
      {INT64_MAX, false}, {INT64_MIN, false}};
  for (const auto& [value, exact] : integers) {
    INFO(value);
    CHECK(encode(to_optuna(whole), value).exact == exact);
  }
  CHECK(encode(to_optuna(real), 0.1).exact);
  CHECK(encode(to_optuna(real), 0.0).exact);
  CHECK_FALSE(encode(to_optuna(real), -0.0).exact);
  CHECK_FALSE(encode(to_optuna(real), std::int64_t{1}).exact);
  CHECK_FALSE(encode(to_optuna(whole), 3.0).exact);
}

struct ParseCase {
  std::string json;
  double value;
  ParamValue wanted;
};

TEST_CASE("encoding: what Optuna's versions wrote is read", "[encoding]") {
  const ParseCase c = GENERATE(values<ParseCase>({
      {R"({"name": "FloatDistribution", "attributes": {"step": 0.1, "low": 0.0, "high": 0.9, "log": false}})", 0.3,
       0.3},
      {R"({"name": "IntDistribution", "attributes": {"log": true, "step": 1, "low": 8, "high": 512}})", 64,
       std::int64_t{64}},
      {R"({"name": "UniformDistribution", "attributes": {"low": 0, "high": 1}})", 1, 1.0},
      {R"({"name": "LogUniformDistribution", "attributes": {"low": 0.1, "high": 1}})", 0.5, 0.5},
      {R"({"name": "DiscreteUniformDistribution", "attributes": {"low": 0, "high": 1, "q": 0.5}})", 0.5, 0.5},
      {R"({"name": "IntUniformDistribution", "attributes": {"low": 0, "high": 9, "step": 3}})", 6, std::int64_t{6}},
      {R"({"name": "IntLogUniformDistribution", "attributes": {"low": 1, "high": 9, "step": 1}})", 6, std::int64_t{6}},
      {R"({"name": "CategoricalDistribution", "attributes": {"choices": [null, true, 3, 3.0, "x\"NaN\"", NaN]}})", 0,
       std::monostate{}},
      {R"({"name": "CategoricalDistribution", "attributes": {"choices": [null, true, 3, 3.0]}})", 1, true},
      {R"({"name": "CategoricalDistribution", "attributes": {"choices": [null, true, 3, 3.0]}})", 2, std::int64_t{3}},
      {R"({"name": "CategoricalDistribution", "attributes": {"choices": [null, true, 3, 3.0]}})", 3, 3.0},
      {R"({"name": "CategoricalDistribution", "attributes": {"choices": ["x\"NaN\" -Infinity", NaN]}})", 0,
       std::string("x\"NaN\" -Infinity")},
      {R"({"name": "CategoricalDistribution", "attributes": {"choices": [1, Infinity, -Infinity]}})", 1, kInfinity},
      {R"({"name": "CategoricalDistribution", "attributes": {"choices": [1, Infinity, -Infinity]}})", 2, -kInfinity},
      {R"({"name": "CategoricalDistribution", "attributes": {"choices": [18446744073709551615]}})", 0,
       18446744073709551615.0},
      {R"({"name": "CategoricalDistribution", "attributes": {"choices": [[64, "a"], {"b": [NaN]}]}})", 0,
       std::string(R"([64,"a"])")},
  }));
  INFO(c.json);
  const ParamValue found = decode(parse_distribution(c.json), c.value);
  CHECK(found.index() == c.wanted.index());
  CHECK((found == c.wanted));
}

TEST_CASE("encoding: what stands for no value is refused", "[encoding]") {
  const std::string categorical = R"({"name": "CategoricalDistribution", "attributes": {"choices": ["a", "b"]}})";
  const std::string integer =
      R"({"name": "IntDistribution", "attributes": {"log": false, "step": 1, "low": 0, "high": 9}})";
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::tuple<std::string, double, std::string> cases[] = {
      {categorical, 2, "index of a choice"},
      {categorical, -1, "index of a choice"},
      {categorical, nan, "index of a choice"},
      {integer, 1e300, "64-bit"},
      {integer, nan, "64-bit"},
      {"", 0, "malformed"},
      {"{", 0, "malformed"},
      {"[]", 0, "another form"},
      {"null", 0, "another form"},
      {R"({"name": "Other", "attributes": {}})", 0, "'Other'"},
      {R"({"name": "FloatDistribution", "attributes": {"low": "a", "high": 1}})", 0, "another form"},
      {R"({"name": "FloatDistribution"})", 0, "another form"},
      {"{\"name\": \"\xff\"}", 0, "malformed"}};
  for (const auto& [text, value, words] : cases) {
    INFO(text << " " << value);
    const std::string& json_text = text;
    const double number = value;
    CHECK_THAT(message_of(ErrorKind::kStorage, [&] { (void)decode(parse_distribution(json_text), number); }),
               Catch::Contains(words));
  }
}

TEST_CASE("encoding: a number that is not finite survives as two columns", "[encoding]") {
  for (const double value : {0.1, -1e308, 5e-324, kInfinity, -kInfinity}) {
    const StoredNumber stored = to_columns(value);
    CHECK(stored.value.has_value() == std::isfinite(value));
    CHECK(from_columns(stored.value.value_or(0), stored.type) == value);
  }
  const StoredNumber nan = to_columns(std::nan(""));
  CHECK_FALSE(nan.value);
  CHECK(std::isnan(from_columns(0, nan.type)));
  CHECK_THAT(message_of(ErrorKind::kStorage, [] { (void)from_columns(0, "ODD"); }), Catch::Contains("'ODD'"));
}

TEST_CASE("encoding: a space survives as JSON, infinite numbers too", "[encoding]") {
  trials::Space space = every_kind();
  space[3].distribution.max = kInfinity;
  space[4].distribution.min = -kInfinity;
  space[5].distribution.min = 0.1;
  const trials::Space read = space_from_json(space_to_json(space));
  REQUIRE(read.size() == space.size());
  CHECK(read[3].distribution.max == kInfinity);
  CHECK(read[4].distribution.min == -kInfinity);
  CHECK(read[5].distribution.min == 0.1);
  CHECK(space_from_json("[]").empty());
  for (const char* text : {"", "[1]", "{\"a\":1}", R"([{"name":"x","kind":"odd"}])", R"([{"kind":"uniform"}])"}) {
    INFO(text);
    CHECK_FALSE(message_of(ErrorKind::kStorage, [&] { (void)space_from_json(text); }).empty());
  }
}

}  // namespace
}  // namespace hfta::storage::testing
