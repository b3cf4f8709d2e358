#include "search/completion.hpp"

#include <catch2/catch.hpp>

#include "tests/trials/distributions.hpp"

using namespace hfta::search;
using namespace hfta::trials::testing;
using namespace hfta::trials;

namespace {

using Kind = DistributionKind;

}  // namespace

TEST_CASE("a value is admitted as the distribution itself gives it") {
  struct Case {
    Distribution distribution;
    ParamValue value;
    std::optional<ParamValue> wanted;
  };
  const ParamValue three = std::int64_t{3}, word = std::string("adam");
  const std::vector<Case> cases = {
      {categorical({std::int64_t{32}, std::int64_t{64}}), 64.0, ParamValue(std::int64_t{64})},
      {categorical({32.0, 64.0}), std::int64_t{32}, ParamValue(32.0)},
      {constant(std::int64_t{32}), std::int64_t{33}, {}},
      {categorical({word, std::string("sgd")}), word, word},
      {constant(word), std::string("Adam"), {}},
      {categorical({true, false}), true, ParamValue(true)},
      {constant(std::int64_t{1}), true, ParamValue(std::int64_t{1})},  // as in Python
      {categorical({false, true}), std::int64_t{1}, ParamValue(true)},
      {categorical({true, std::int64_t{1}, 1.0}), 1.0, ParamValue(1.0)},
      {constant(std::int64_t{2}), true, {}},
      {categorical({std::monostate{}, 0.5}), std::monostate{}, ParamValue(std::monostate{})},
      {bounded(Kind::kUniform, 0, 1), std::int64_t{1}, ParamValue(1.0)},
      {bounded(Kind::kUniform, 0, 1), 1.5, {}},
      {bounded(Kind::kUniform, 0, 1), word, {}},
      {bounded(Kind::kUniform, 0, 1), true, {}},
      {bounded(Kind::kUniform, 0, 1), std::nan(""), {}},
      {bounded(Kind::kIntUniform, 1, 5), 3.0, three},
      {bounded(Kind::kIntUniform, 1, 5), 3.5, {}},
      {bounded(Kind::kIntUniform, 1, 5), std::int64_t{6}, {}},
      {bounded(Kind::kLogUniformValues, 1e-4, 1), 1e-4, ParamValue(1e-4)},
      {bounded(Kind::kLogUniformValues, 1e-4, 1), 9e-5, {}},
      {bounded(Kind::kLogUniformValues, 1e-9, 1), 0.0, {}},  // the slack is of the end that is near
      {bounded(Kind::kLogUniformValues, 1e-9, 1), 5e-10, {}},
      {bounded(Kind::kLogUniformValues, 1e-9, 1), 1 + 5e-10, ParamValue(1.0)},
      {bounded(Kind::kLogUniform, -2, 0), 0.1353352832366127, ParamValue(std::exp(-2.0))},
      {bounded(Kind::kQUniform, 0, 1, 0.1), 0.30000000000000004, ParamValue(0.3)},
      {bounded(Kind::kQUniform, 0, 1, 0.1), 0.35, {}},
      {bounded(Kind::kQUniform, 0, 1, 0.1), 1.1, {}},
      {bounded(Kind::kQUniform, 0, 9, 3, true), 3.0, three},
      {bounded(Kind::kNormal, 0, 1), -1e6, ParamValue(-1e6)},
      {bounded(Kind::kLogNormal, 0, 1), 0.0, {}},
  };
  for (const Case& c : cases) {
    CAPTURE(name_of(c.distribution.kind), to_text(c.value));
    CHECK(admit(c.distribution, c.value) == c.wanted);
  }
}

TEST_CASE("what is not fixed is drawn, by seed and number alone") {
  const Space space = {{"lr", bounded(Kind::kUniform, 0, 1)},
                       {"hidden", categorical({std::int64_t{32}, std::int64_t{64}})}};
  const Completion one = complete(space, {{"hidden", std::int64_t{64}}}, 1, 5);
  CHECK(one.problem.empty());
  REQUIRE(one.params.size() == 2);
  CHECK(one.params[0].first == "lr");
  CHECK(one.params[1].second == ParamValue(std::int64_t{64}));
  CHECK(complete(space, {{"hidden", std::int64_t{64}}}, 1, 5).params == one.params);
  CHECK(complete(space, {{"hidden", std::int64_t{64}}}, 1, 6).params != one.params);
  CHECK(complete(space, {{"hidden", std::int64_t{64}}}, 2, 5).params != one.params);
  CHECK(complete(space, {{"hidden", std::int64_t{65}}}, 1, 5).problem ==
        "enqueued with hidden = 65, wanted a value that its distribution (categorical) can give");
  CHECK(complete(space, {{"hidden", std::string("64")}}, 1, 5).problem ==
        "enqueued with hidden = the text '64', wanted a value that its distribution (categorical) can give");
  CHECK(complete(space, {{"lr", std::string("0.1")}}, 1, 5).problem ==
        "enqueued with lr = the text '0.1', wanted a value that its distribution (uniform) can give");
  CHECK(complete(space, {{"hiden", std::int64_t{64}}}, 1, 5).problem ==
        "enqueued with hiden, which is no parameter of the study; did you mean 'hidden'?");
}

TEST_CASE("what is enqueued is completed within conditions and constraints") {
  const Space space = {{"optimizer", categorical({word("sgd"), word("adam")})},
                       {"momentum", bounded(Kind::kUniform, 0, 1), {{"optimizer", {word("sgd")}}}},
                       {"wd", bounded(Kind::kUniform, 0, 1)}};
  const std::vector<hfta::search::Constraint> constraints = {hfta::search::Constraint::parse("wd < momentum / 10")};
  for (int number = 0; number < 20; ++number) {
    const Completion adam = complete(space, {{"optimizer", word("adam")}}, 1, number, constraints);
    CHECK(adam.problem.empty());
    CHECK(adam.params.size() == 2);
    const Completion sgd = complete(space, {{"optimizer", word("sgd")}}, 1, number, constraints);
    CHECK(sgd.problem.empty());
    REQUIRE(is_whole(space, sgd.params));
    CHECK(constraints[0].holds(sgd.params));
  }
  for (int number = 0; number < 20; ++number) {  // a parameter with a condition, alone: the other is drawn to suit it
    const Completion alone = complete(space, {{"momentum", 0.5}}, 1, number, constraints);
    CHECK(alone.problem.empty());
    CHECK(hfta::trials::find_value(alone.params, "optimizer") != nullptr);
    CHECK(*hfta::trials::find_value(alone.params, "optimizer") == word("sgd"));
  }
  CHECK(complete(space, {{"optimizer", word("adam")}, {"momentum", 0.5}}, 1, 0, constraints).problem ==
        "enqueued with momentum, which does not apply beside its other parameters");
  CHECK(complete(space, {{"optimizer", word("sgd")}, {"momentum", 0.5}, {"wd", 0.9}}, 1, 0, constraints).problem ==
        "enqueued against the constraint 'wd < momentum / 10'");
  for (int number = 0; number < 20; ++number) {  // where nothing fits, the constraint is the reason, and no condition
    CHECK(complete(space, {{"momentum", 0.5}, {"wd", 0.9}}, 1, number, constraints).problem ==
          "enqueued against the constraint 'wd < momentum / 10'");
  }
  const Completion wrong = complete(space, {{"optimizer", word("sgd")}, {"momentum", 7.0}}, 1, 0);
  CHECK(wrong.params.empty());
  CHECK_FALSE(wrong.problem.empty());
}
