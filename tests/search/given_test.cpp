// Draws some of whose values are given: they join the trials of an array.

#include "search/sampler/given.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "search/methods.hpp"
#include "search/sampler/parzen.hpp"
#include "tests/trials/distributions.hpp"

using namespace hfta;
using namespace hfta::search;
using namespace hfta::trials::testing;
using trials::Goal;
using trials::Params;
using trials::Space;
using trials::State;
using Kind = DistributionKind;

namespace {

const std::set<std::string> kNone;

// A width that splits arrays, beside parameters of every kind.
Space mixed() {
  return {{"lr", bounded(Kind::kLogUniformValues, 1e-5, 1)},
          {"width", categorical({integer(16), integer(32), integer(64)})},
          {"depth", bounded(Kind::kIntUniform, 1, 40)},
          {"dropout", bounded(Kind::kQUniform, 0, 0.9, 0.1)}};
}

std::vector<const Method*> methods_that_learn() {
  std::vector<const Method*> all;
  for (const Method& method : methods()) {
    if (!method.needs_list && learns(method, {})) all.push_back(&method);
  }
  return all;
}

std::unique_ptr<Sampler> make(const Method& method, const Space& space, std::vector<Constraint> constraints = {}) {
  return make_sampler(method, {},
                      {.space = space, .goal = Goal::kMinimize, .seed = 3, .fixed = kNone, .constraints = constraints});
}

// The trials of a study in which small rates and narrow nets do best.
History history_of(const Space& space, int count) {
  History history;
  for (Params& params : make_random(space, 11)->ask(0, count, {})) {
    const double value = std::get<double>(params[0].second) + 0.01 * static_cast<double>(history.size() % 7);
    history.push_back({std::move(params), {value, value}, {value}, State::kComplete});
  }
  return history;
}

}  // namespace

TEST_CASE("what is given takes the place of what was drawn, and nothing is added") {
  const Params drawn = {{"a", 0.5}, {"b", integer(2)}};
  CHECK(with_given(drawn, {}) == drawn);
  CHECK(with_given(drawn, {{"b", integer(7)}, {"c", true}}) == Params{{"a", 0.5}, {"b", integer(7)}});
  CHECK(has_given(drawn, {}));
  CHECK(has_given(drawn, {{"b", integer(2)}}));
  CHECK_FALSE(has_given(drawn, {{"b", 2.0}}));
  CHECK_FALSE(has_given(drawn, {{"c", integer(2)}}));
}

TEST_CASE("draws of every method that learns have the values that are given, at the beginning and later") {
  const Space space = mixed();
  for (const Method* method : methods_that_learn()) {
    for (const int before : {0, 5, 40}) {
      for (const Params& given :
           {Params{{"width", integer(32)}}, Params{{"width", integer(64)}, {"depth", integer(40)}},
            Params{{"dropout", 0.3}, {"unknown", true}}}) {
        INFO(method->name << " behind " << before << " trials");
        const History history = history_of(space, before);
        const auto drawn = make(*method, space)->ask(before, 5, history, given);
        REQUIRE(drawn.size() == 5);
        for (const Params& params : drawn) {
          CHECK(with_given(params, given) == params);
        }
        CHECK(std::set<Params>(drawn.begin(), drawn.end()).size() == 5);
      }
    }
  }
}

TEST_CASE("k draws with given values are k draws one by one, and draws without are not affected") {
  const Space space = mixed();
  const Params given = {{"width", integer(16)}};
  const History history = history_of(space, 30);
  for (const Method* method : methods_that_learn()) {
    INFO(method->name);
    const auto sampler = make(*method, space);
    const std::vector<Params> free = sampler->ask(30, 3, history);
    const std::vector<Params> at_once = sampler->ask(30, 3, history, given);
    CHECK(sampler->ask(30, 3, history) == free);
    History grown = history;
    for (int i = 0; i < 3; ++i) {
      CHECK(make(*method, space)->ask(30 + i, 1, grown, given).at(0) == at_once[static_cast<std::size_t>(i)]);
      grown.push_back({at_once[static_cast<std::size_t>(i)]});
    }
  }
}

TEST_CASE("models choose the other values by what is good beside the given ones") {
  // The best place of x is 0.2 where w is a, and 0.8 where it is b.
  const Space space = {{"x", bounded(Kind::kUniform, 0, 1)}, {"w", categorical({word("a"), word("b")})}};
  History history;
  for (Params& params : make_sobol(space, 5)->ask(0, 40, {})) {
    const double best = params[1].second == word("a") ? 0.2 : 0.8;
    const double away = std::get<double>(params[0].second) - best, value = away * away;
    history.push_back({std::move(params), std::vector<double>(3, value), {value}, State::kComplete});
  }
  for (const char* method : {"gp", "tpe", "bohb"}) {
    for (const auto& [w, best] : {std::pair("a", 0.2), std::pair("b", 0.8)}) {
      INFO(method << ", " << w);
      std::vector<double> drawn;
      for (const Params& params : make(search::method(method), space)->ask(40, 9, history, {{"w", word(w)}})) {
        drawn.push_back(std::get<double>(params[0].second));
      }
      std::sort(drawn.begin(), drawn.end());
      CHECK(std::abs(drawn[4] - best) < 0.25);
    }
  }
}

TEST_CASE("a density under a condition is that of the trials that meet it") {
  const Axes axes = {Axis(bounded(Kind::kUniform, 0, 1)), Axis(categorical({word("a"), word("b")}))};
  const auto point = [&](double x, const char* w) { return Points{axes[0].point_of(x), axes[1].point_of(word(w))}; };
  std::vector<Points> observed;
  for (int i = 0; i < 10; ++i) {
    observed.push_back(point(0.1 + 0.01 * i, "a"));
    observed.push_back(point(0.8 + 0.01 * i, "b"));
  }
  const Parzen density(axes, observed);
  for (const char* w : {"a", "b"}) {
    INFO(w);
    const Parzen::Condition given = density.under({{1, axes[1].point_of(word(w))}});
    CountedRandom random(7, Stream::kTpe, 0);
    int high = 0;
    for (int i = 0; i < 2000; ++i) {
      const Points drawn = density.sample(random, given);
      CHECK(axes[1].value_at(drawn[1]) == word(w));
      high += drawn[0].part.middle() > 0.5 ? 1 : 0;
    }
    // Without the condition it would be half. Kernels are wide, and those of the other word keep some weight.
    CHECK((std::string(w) == "a" ? high : 2000 - high) < 2000 / 5);
  }
}

TEST_CASE("of a finite space the part with the given values is tried out, then others are drawn") {
  const Space space = {{"a", bounded(Kind::kQUniform, 0, 0.9, 0.1)}, {"b", categorical({word("x"), word("y")})}};
  const Params given = {{"b", word("y")}};
  for (const char* name : {"gp", "tpe", "cmaes", "evolution", "nsga2"}) {
    INFO(name);
    const auto sampler = make(method(name), space);
    History history;
    std::set<double> seen;
    for (int n = 0; n < 12; ++n) {
      Params params = sampler->ask(n, 1, history, given).at(0);
      CHECK(has_given(params, given) == (n < 10));
      if (n < 10) CHECK(seen.insert(std::get<double>(params[0].second)).second);
      history.push_back({std::move(params), {1.0 * n}, {1.0 * n}, State::kComplete});
    }
  }
}

TEST_CASE("given values and constraints hold together") {
  const Space space = {{"hidden1", bounded(Kind::kIntUniform, 1, 64)},
                       {"hidden2", bounded(Kind::kIntUniform, 1, 64)},
                       {"x", bounded(Kind::kUniform, 0, 1)}};
  const std::vector<Constraint> constraints = {Constraint::parse("hidden2 <= hidden1")};
  for (const char* name : {"gp", "tpe", "evolution"}) {
    INFO(name);
    const auto drawn = make(method(name), space, constraints)->ask(0, 6, {}, {{"hidden2", integer(48)}});
    for (const Params& params : drawn) {
      CHECK(params[1].second == integer(48));
      CHECK(std::get<std::int64_t>(params[0].second) >= 48);
    }
  }
}

TEST_CASE("a parameter with conditions can be given, and decides which others apply") {
  Space space = {{"optimizer", categorical({word("sgd"), word("adamw")})},
                 {"momentum", bounded(Kind::kUniform, 0, 0.99)},
                 {"hidden", categorical({integer(8), integer(16)})}};
  space[1].when = {{"optimizer", {word("sgd")}}};
  for (const char* name : {"gp", "tpe", "cmaes", "evolution", "dehb"}) {
    for (const char* optimizer : {"sgd", "adamw"}) {
      INFO(name << ", " << optimizer);
      const Params given = {{"optimizer", word(optimizer)}, {"hidden", integer(16)}};
      const int there_are = std::string(optimizer) == "sgd" ? 4 : 1;  // of adamw's a second draw would be a repeat
      for (const Params& params : make(method(name), space)->ask(0, there_are, {}, given)) {
        CHECK(has_given(params, given));
        CHECK((trials::find_value(params, "momentum") != nullptr) == (std::string(optimizer) == "sgd"));
      }
    }
  }
}
