#include "search/space.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.hpp"
#include "search/choices.hpp"
#include "tests/trials/distributions.hpp"

using namespace hfta::search;
using namespace hfta::trials::testing;
using Kind = DistributionKind;

namespace {

const double kNan = std::nan(""), kInf = std::numeric_limits<double>::infinity();

std::string refusal(const Distribution& d) {
  try {
    validate(d);
  } catch (const hfta::Error& error) {
    CHECK(error.kind() == hfta::ErrorKind::kConfig);
    return error.what();
  }
  return "accepted";
}

std::vector<ParamValue> integers(std::int64_t first, std::int64_t last) {
  std::vector<ParamValue> values;
  for (std::int64_t i = first; i <= last; ++i) values.emplace_back(i);
  return values;
}

}  // namespace

TEST_CASE("validate says what was found and what was wanted") {
  struct Case {
    Distribution distribution;
    std::string wanted;  // the message
  };
  const std::vector<Case> cases = {
      {bounded(Kind::kUniform, 3, 1), "min: found 3, wanted at most max = 1"},
      {bounded(Kind::kIntUniform, 3, 1), "min: found 3, wanted at most max = 1"},
      {bounded(Kind::kUniform, kNan, 1), "min: found nan, wanted a finite number"},
      {bounded(Kind::kUniform, 0, kInf), "max: found inf, wanted a finite number"},
      {bounded(Kind::kIntUniform, 0.5, 1), "min: found 0.5, wanted an integer between -2^53 and 2^53"},
      {bounded(Kind::kIntUniform, 0, 1e17), "max: found 1e+17, wanted an integer between -2^53 and 2^53"},
      {bounded(Kind::kLogUniformValues, 0, 1), "min: found 0, wanted more than 0 (the distribution is logarithmic)"},
      {bounded(Kind::kQLogUniformValues, -1, 1), "min: found -1, wanted more than 0 (the distribution is logarithmic)"},
      {bounded(Kind::kInvLogUniformValues, 0, 1), "min: found 0, wanted more than 0 (the distribution is logarithmic)"},
      {bounded(Kind::kLogUniform, 1, 1000), "max: found 1000, wanted an exponent of e between -700 and 700"},
      {bounded(Kind::kInvLogUniform, -701, 0), "min: found -701, wanted an exponent of e between -700 and 700"},
      {bounded(Kind::kQUniform, 0, 1, 0), "q: found 0, wanted a finite number above 0"},
      {bounded(Kind::kQUniform, 0, 1, -0.1), "q: found -0.1, wanted a finite number above 0"},
      {bounded(Kind::kQUniform, 0, 10, 0.5, true), "q: found 0.5, wanted an integer"},
      {bounded(Kind::kQUniform, 0, 1.7e308, 1e308), "q: found 1e+308, wanted multiples that are finite numbers"},
      {normal(Kind::kNormal, 0, -1), "sigma: found -1, wanted a finite number of at least 0"},
      {normal(Kind::kNormal, kNan, 1), "mu: found nan, wanted a finite number"},
      {normal(Kind::kLogNormal, 690, 10),
       "sigma: found 10, wanted |mu| + 8.6 sigma of at most 700 (it is an exponent of e)"},
      {categorical({}), "values: found none, wanted at least one value"},
      {categorical({word("a"), integer(1), word("a")}),
       "values: found a twice, wanted each value once (`probabilities` make one come sooner)"},
      {categorical({integer(1), 1.0}),
       "values: found 1 twice, wanted each value once (`probabilities` make one come sooner)"},
      {categorical({0.5, kNan}), "values: found nan, wanted a finite number"},
      {categorical({integer(1), integer(2)}, {0.5}),
       "probabilities: found 1 of them, wanted one for each of the 2 values"},
      {categorical({integer(1), integer(2)}, {1.5, -0.5}), "probabilities: found -0.5, wanted numbers of at least 0"},
      {categorical({integer(1), integer(2)}, {0.5, 0.4}), "probabilities: found the sum 0.9, wanted the sum 1"},
      {Distribution{}, "value: found none, wanted one value"},
  };
  for (const Case& c : cases) CHECK(refusal(c.distribution) == c.wanted);
  CHECK(refusal(bounded(Kind::kQUniform, 0, 1e300, 1e-300)).find("q: found 1e-300, wanted more than ") == 0);
}

TEST_CASE("validate accepts what can be drawn from") {
  const std::vector<Distribution> cases = {
      bounded(Kind::kUniform, -1e308, 1e308),
      bounded(Kind::kUniform, 2, 2),
      bounded(Kind::kIntUniform, -9007199254740992.0, 9007199254740992.0),
      bounded(Kind::kLogUniform, -9.2, 0),
      bounded(Kind::kLogUniformValues, 5e-324, 1.7e308),
      bounded(Kind::kQUniform, 0.05, 0.95, 0.1),
      bounded(Kind::kQUniform, 1, 2, 10, true),
      normal(Kind::kNormal, 0, 0),
      normal(Kind::kQLogNormal, 1, 1, 0.5),
      categorical({std::monostate{}, true, false, integer(1), 0.5, word("x"), word("1")}),
      categorical({integer(9007199254740992), integer(9007199254740993)}),
      categorical({word("a"), word("b"), word("c")}, {0.3333333, 0.3333333, 0.3333334}),
      constant(std::monostate{}),
  };
  for (const Distribution& d : cases) CHECK(refusal(d) == "accepted");
}

TEST_CASE("enumerate lists finite distributions in order") {
  struct Case {
    Distribution distribution;
    std::vector<ParamValue> wanted;
  };
  const double log8 = std::log(8);
  const std::vector<Case> cases = {
      {constant(word("x")), {word("x")}},
      {categorical({word("b"), std::monostate{}, integer(1)}), {word("b"), std::monostate{}, integer(1)}},
      {bounded(Kind::kIntUniform, -2, 3), integers(-2, 3)},
      {bounded(Kind::kIntUniform, 7, 7), {integer(7)}},
      {bounded(Kind::kQUniform, 0, 0.5, 0.1), {0.0, 0.1, 0.2, 0.3, 0.4, 0.5}},  // as written, not 0.30000000000000004
      {bounded(Kind::kQUniform, 0.05, 0.95, 0.1), {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}},
      {bounded(Kind::kQUniform, 0.04, 0.26, 0.1), {0.0, 0.1, 0.2, 0.3}},  // round(x / q) * q leaves the range
      {bounded(Kind::kQUniform, -30, 30, 15, true), {integer(-30), integer(-15), integer(0), integer(15), integer(30)}},
      {bounded(Kind::kQUniform, 2, 10, 4, true), {integer(4), integer(8)}},  // 0 and 12 have no share
      {bounded(Kind::kQUniform, 1, 2, 10, true), {integer(0)}},
      {bounded(Kind::kQUniform, 3, 3, 2, true), {integer(4)}},  // half to even: 1.5 -> 2
      {bounded(Kind::kQLogUniform, 0, log8, 2, true), {integer(2), integer(4), integer(6), integer(8)}},
      {bounded(Kind::kQLogUniformValues, 16, 64, 16, true), {integer(16), integer(32), integer(48), integer(64)}},
      {bounded(Kind::kQLogUniformValues, 0.25, 1, 0.25), {0.25, 0.5, 0.75, 1.0}},
      {bounded(Kind::kUniform, 0.5, 0.5), {0.5}},
      {bounded(Kind::kLogUniformValues, 1e-4, 1e-4), {1e-4}},
      {normal(Kind::kNormal, 0.25, 0), {0.25}},
      {normal(Kind::kQNormal, 0.3, 0, 0.25), {0.25}},
  };
  for (const Case& c : cases) {
    const auto values = enumerate(c.distribution);
    REQUIRE(values.has_value());
    CHECK(*values == c.wanted);
  }
}

TEST_CASE("enumerate gives up where values are too many or not countable") {
  for (const Distribution& d :
       {bounded(Kind::kUniform, 0, 1), bounded(Kind::kLogUniform, -1, 1), bounded(Kind::kLogUniformValues, 1, 2),
        bounded(Kind::kInvLogUniform, -1, 1), bounded(Kind::kInvLogUniformValues, 1, 2), normal(Kind::kNormal, 0, 1),
        normal(Kind::kQNormal, 0, 1), normal(Kind::kLogNormal, 0, 1), normal(Kind::kQLogNormal, 0, 1),
        bounded(Kind::kIntUniform, 0, 1'000'000), bounded(Kind::kQUniform, 0, 1, 1e-7)}) {
    INFO(hfta::trials::name_of(d.kind));
    CHECK_FALSE(enumerate(d).has_value());
  }
  CHECK(enumerate(bounded(Kind::kIntUniform, 1, 1'000'000))->size() == 1'000'000);
}

TEST_CASE("extremes are what a config must be checked with") {
  struct Case {
    Distribution distribution;
    std::vector<ParamValue> wanted;
  };
  const std::vector<Case> cases = {
      {constant(true), {true}},
      {categorical({word("b"), word("a"), word("c")}), {word("b"), word("a"), word("c")}},
      {bounded(Kind::kIntUniform, 1, 9), {integer(1), integer(9)}},
      {bounded(Kind::kIntUniform, 4, 4), {integer(4)}},
      {bounded(Kind::kUniform, -0.5, 0.5), {-0.5, 0.5}},
      {bounded(Kind::kQUniform, 2, 256, 8, true), {integer(0), integer(256)}},  // a batch size of 0 must be seen
      {bounded(Kind::kLogUniform, -2, 3), {std::exp(-2.0), std::exp(3.0)}},
      {bounded(Kind::kInvLogUniform, -2, 3), {std::exp(-3.0), std::exp(2.0)}},
      {bounded(Kind::kLogUniformValues, 1e-4, 0.1), {1e-4, 0.1}},
      {bounded(Kind::kInvLogUniformValues, 1e-4, 0.1), {1e-4, 0.1}},
      {bounded(Kind::kQLogUniformValues, 10, 100, 25, true), {integer(0), integer(100)}},
      {normal(Kind::kNormal, 1, 0.5), {-1.0, 3.0}},
      {normal(Kind::kQNormal, 0, 0.5, 2, true), {integer(-2), integer(2)}},
      {normal(Kind::kLogNormal, 0, 0.25), {std::exp(-1.0), std::exp(1.0)}},
      {normal(Kind::kQLogNormal, 0, 0.25, 0.5), {0.5, 2.5}},  // e^-1 and e^1
  };
  for (const Case& c : cases) {
    INFO(hfta::trials::name_of(c.distribution.kind));
    CHECK(extremes(c.distribution) == c.wanted);
  }
}

TEST_CASE("Choices weigh values by their share of the range") {
  struct Case {
    Distribution distribution;
    std::vector<double> wanted;  // up to a factor
  };
  const std::vector<Case> cases = {
      {bounded(Kind::kIntUniform, 1, 3), {1, 1, 1}},
      {categorical({word("a"), word("b")}, {0.25, 0.75}), {1, 3}},
      {bounded(Kind::kQUniform, 0, 2, 1), {1, 2, 1}},  // half cells at both ends
      {bounded(Kind::kQUniform, 0.5, 2.75, 1), {4, 4, 1}},
      {bounded(Kind::kQLogUniformValues, 1, 4, 1),
       {std::log(1.5), std::log(2.5 / 1.5), std::log(3.5 / 2.5), std::log(4 / 3.5)}},
  };
  for (const Case& c : cases) {
    const auto choices = Choices::of(c.distribution);
    REQUIRE(choices.has_value());
    REQUIRE(choices->count() == static_cast<std::int64_t>(c.wanted.size()));
    double sum = 0;
    for (std::int64_t i = 0; i < choices->count(); ++i) sum += choices->weight(i);
    const double wanted_sum = std::accumulate(c.wanted.begin(), c.wanted.end(), 0.0);
    for (std::size_t i = 0; i < c.wanted.size(); ++i) {
      CHECK(choices->weight(static_cast<std::int64_t>(i)) / sum == Approx(c.wanted[i] / wanted_sum).epsilon(1e-9));
    }
  }
}
