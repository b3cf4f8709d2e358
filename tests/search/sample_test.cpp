#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <map>

#include "search/choices.hpp"
#include "search/space.hpp"
#include "tests/trials/distributions.hpp"

using namespace hfta::search;
using namespace hfta::trials::testing;
using Kind = DistributionKind;

namespace {

constexpr int kDraws = 20'000;

std::vector<ParamValue> draw(const Distribution& d, std::uint64_t seed, int count = kDraws) {
  std::vector<ParamValue> values;
  hfta::CountedRandom random(seed, hfta::Stream::kSample, 0);
  for (int i = 0; i < count; ++i) values.push_back(sample(d, random));
  return values;
}

double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

}  // namespace

TEST_CASE("Continuous distributions have their range and their cumulative distribution") {
  struct Case {
    Distribution distribution;
    double low, high, median;
    std::function<double(double)> cdf;
  };
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<Case> cases = {
      {bounded(Kind::kUniform, -1, 3), -1, 3, 1, [](double x) { return (x + 1) / 4; }},
      {bounded(Kind::kUniform, -1e308, 1e308), -1e308, 1e308, 0, [](double x) { return x / 1e308 / 2 + 0.5; }},
      {bounded(Kind::kLogUniform, -7, -1), std::exp(-7), std::exp(-1), std::exp(-4),
       [](double x) { return (std::log(x) + 7) / 6; }},
      {bounded(Kind::kLogUniformValues, 1e-4, 1), 1e-4, 1, 1e-2, [](double x) { return std::log10(x) / 4 + 1; }},
      // log(1/x) uniform between -1 and 5: x between e^-5 and e^1
      {bounded(Kind::kInvLogUniform, -1, 5), std::exp(-5), std::exp(1), std::exp(-2),
       [](double x) { return 1 - (std::log(1 / x) + 1) / 6; }},
      {bounded(Kind::kInvLogUniformValues, 0.01, 100), 0.01, 100, 1, [](double x) { return std::log10(x) / 4 + 0.5; }},
      {normal(Kind::kNormal, 2, 3), -inf, inf, 2, [](double x) { return normal_cdf((x - 2) / 3); }},
      {normal(Kind::kLogNormal, -1, 0.5), 0, inf, std::exp(-1),
       [](double x) { return normal_cdf((std::log(x) + 1) / 0.5); }},
  };
  for (const Case& c : cases) {
    INFO(hfta::trials::name_of(c.distribution.kind));
    std::vector<double> values;
    for (const ParamValue& value : draw(c.distribution, 21)) values.push_back(std::get<double>(value));
    std::sort(values.begin(), values.end());
    CHECK(values.front() >= c.low);
    CHECK(values.back() <= c.high);
    CHECK(c.cdf(values[kDraws / 2]) == Approx(0.5).margin(0.012));
    CHECK(c.cdf(c.median) == Approx(0.5).margin(1e-12));
    double distance = 0;  // Kolmogorov-Smirnov
    for (int i = 0; i < kDraws; ++i) {
      distance = std::max(distance, std::abs(c.cdf(values[static_cast<std::size_t>(i)]) - (i + 0.5) / kDraws));
    }
    CHECK(distance < 1.95 / std::sqrt(kDraws));  // exceeded once in a thousand seeds
  }
}

TEST_CASE("Finite distributions give each value as often as its weight says") {
  const std::vector<Distribution> cases = {
      categorical({word("a"), word("b"), word("c"), word("d"), word("e")}),
      categorical({word("a"), word("never"), word("b"), word("c")}, {0.05, 0, 0.7, 0.25}),
      categorical({word("first"), word("last")}, {0.999999, 0.000001}),
      bounded(Kind::kIntUniform, -3, 3),
      bounded(Kind::kQUniform, 0, 1, 0.1),
      bounded(Kind::kQUniform, 0.04, 0.31, 0.1),
      bounded(Kind::kQUniform, 2, 10, 4, true),
      bounded(Kind::kQLogUniform, 0, 3, 2, true),
      bounded(Kind::kQLogUniformValues, 10, 100, 10, true),
  };
  for (const Distribution& d : cases) {
    INFO(hfta::trials::name_of(d.kind));
    const Choices choices = *Choices::of(d);
    std::map<ParamValue, int> counts;
    for (const ParamValue& value : draw(d, 22)) ++counts[value];
    double sum = 0;
    for (std::int64_t i = 0; i < choices.count(); ++i) sum += choices.weight(i);
    int seen = 0;
    for (std::int64_t i = 0; i < choices.count(); ++i) {
      const double p = choices.weight(i) / sum;
      const int count = counts[choices.value(i)];
      seen += count;
      CHECK(std::abs(count - kDraws * p) <= 4.5 * std::sqrt(kDraws * p * (1 - p)));
    }
    CHECK(seen == kDraws);  // no other value, and none of another type, ever comes
  }
}

TEST_CASE("q rounds to multiples of q, and whole numbers are integers where they should be") {
  struct Case {
    Distribution distribution;
    double q;
    bool integer;
  };
  const std::vector<Case> cases = {
      {bounded(Kind::kQUniform, -5, 5, 0.25), 0.25, false},
      {bounded(Kind::kQUniform, -50, 50, 3, true), 3, true},
      {bounded(Kind::kQUniform, 0, 10, 2, false), 2, false},
      {bounded(Kind::kQLogUniform, -3, 3, 0.1), 0.1, false},
      {bounded(Kind::kQLogUniformValues, 1, 512, 8, true), 8, true},
      {normal(Kind::kQNormal, 0, 10, 5, true), 5, true},
      {normal(Kind::kQNormal, 0, 1, 0.3), 0.3, false},
      {normal(Kind::kQLogNormal, 3, 1, 4, true), 4, true},
      {normal(Kind::kQLogNormal, 0, 1, 0.05), 0.05, false},
  };
  for (const Case& c : cases) {
    INFO(hfta::trials::name_of(c.distribution.kind) << " q=" << c.q);
    for (const ParamValue& value : draw(c.distribution, 23, 500)) {
      if (c.integer) {
        REQUIRE(std::holds_alternative<std::int64_t>(value));
        CHECK(std::get<std::int64_t>(value) % static_cast<std::int64_t>(c.q) == 0);
      } else {
        REQUIRE(std::holds_alternative<double>(value));
        const double x = std::get<double>(value);
        CHECK(x == Approx(std::round(x / c.q) * c.q).epsilon(1e-15).margin(1e-300));
      }
    }
  }
}

TEST_CASE("q_normal has the mean and spread of its normal") {
  double sum = 0, squares = 0;
  for (const ParamValue& value : draw(normal(Kind::kQNormal, 100, 20, 1, true), 24)) {
    const auto x = static_cast<double>(std::get<std::int64_t>(value));
    sum += x / kDraws;
    squares += x * x / kDraws;
  }
  CHECK(sum == Approx(100).margin(0.6));
  CHECK(std::sqrt(squares - sum * sum) == Approx(20).margin(0.5));
}

TEST_CASE("A sample is a function of the generator's position") {
  const Distribution d = bounded(Kind::kUniform, 0, 1);
  CHECK(draw(d, 25, 50) == draw(d, 25, 50));
  CHECK(draw(d, 25, 50) != draw(d, 26, 50));
  CHECK(draw(constant(integer(3)), 25, 2) == std::vector<ParamValue>{integer(3), integer(3)});
}

TEST_CASE("The widest integer range is drawn without overflow") {
  const Distribution d = bounded(Kind::kIntUniform, -9007199254740992.0, 9007199254740992.0);
  int negative = 0;
  for (const ParamValue& value : draw(d, 27, 1000)) {
    const std::int64_t i = std::get<std::int64_t>(value);
    REQUIRE(std::abs(i) <= 9007199254740992);
    negative += i < 0 ? 1 : 0;
  }
  CHECK(negative == Approx(500).margin(70));
}
