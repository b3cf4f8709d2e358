// Spaces whose parameters depend on each other, under every method that can search them.
#include "search/sampler/restricted.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/error.hpp"
#include "search/methods.hpp"
#include "tests/trials/distributions.hpp"

using namespace hfta::search;
using namespace hfta::trials;
using namespace hfta::trials::testing;
using Kind = DistributionKind;

namespace {

// Seven configurations: sgd with three momenta, of which one has two dampenings more, adam with three betas.
Space finite() {
  return {{"optimizer", categorical({word("sgd"), word("adam")})},
          {"momentum", categorical({0.0, 0.5, 0.9}), {{"optimizer", {word("sgd")}}}},
          {"dampening", categorical({0.1, 0.2}), {{"momentum", {0.5}}}},
          {"beta", bounded(Kind::kIntUniform, 1, 3), {{"optimizer", {word("adam")}}}}};
}

Space infinite() {
  return {{"optimizer", categorical({word("sgd"), word("adam")})},
          {"lr", bounded(Kind::kLogUniformValues, 1e-4, 1)},
          {"momentum", bounded(Kind::kUniform, 0, 1), {{"optimizer", {word("sgd")}}}},
          {"wd", bounded(Kind::kUniform, 0, 1)}};
}

std::vector<Constraint> constraints(const std::vector<std::string>& texts) {
  std::vector<Constraint> all;
  for (const std::string& text : texts) all.push_back(Constraint::parse(text));
  return all;
}

std::unique_ptr<Sampler> sampler(const std::string& name, const Space& space,
                                 const std::vector<std::string>& texts = {}, std::uint64_t seed = 1) {
  static const std::set<std::string> fixed;
  MethodOptions options;
  options.tpe.startup_trials = 5;
  options.bohb.min_points = 3;
  options.hyperband.max_epochs = 1;
  return make_sampler(method(name), options, {space, Goal::kMinimize, seed, fixed, constraints(texts)});
}

double loss(const Params& params) {
  double sum = 0;
  for (const auto& [name, value] : params) {
    if (const auto* real = std::get_if<double>(&value)) sum += (*real - 0.3) * (*real - 0.3);
    if (const auto* integer = std::get_if<std::int64_t>(&value)) sum += static_cast<double>(*integer);
  }
  return sum;
}

// As many draws, each told at once what it came to.
std::vector<Params> drawn(Sampler& sampler, int count) {
  History history;
  std::vector<Params> all;
  for (int i = 0; i < count; ++i) {
    const std::vector<Params> asked = sampler.ask(i, 1, history);
    if (asked.empty()) break;
    all.push_back(asked.front());
    const double value = loss(all.back());
    history.push_back({all.back(), {value}, {value}, State::kComplete});
  }
  return all;
}

std::string text_of(const Params& params) {
  std::string text;
  for (const auto& [name, value] : params) text += name + "=" + to_text(value) + " ";
  return text;
}

const std::vector<std::string> kMethods = {"random", "tpe", "hyperband", "bohb", "dehb"};
const std::vector<std::string> kByGroups = {"tpe", "gp", "cmaes", "evolution", "nsga2", "bohb", "freeze_thaw"};

}  // namespace

TEST_CASE("every draw has the parameters that apply to it, and no others") {
  for (const std::string& name : kMethods) {
    for (const Space& space : {finite(), infinite()}) {
      CAPTURE(name);
      std::set<std::string> optimizers;
      for (const Params& params : drawn(*sampler(name, space), 60)) {
        CHECK(is_whole(space, params));
        optimizers.insert(to_text(params.front().second));
      }
      CHECK(optimizers.size() == 2);
    }
  }
}

TEST_CASE("a grid with conditions has each configuration once") {
  const auto grid = sampler("grid", finite());
  CHECK(grid->size() == 7);
  std::vector<std::string> texts;
  for (const Params& params : grid->ask(0, 100, {})) texts.push_back(text_of(params));
  CHECK(texts == std::vector<std::string>{"optimizer=sgd momentum=0 ", "optimizer=sgd momentum=0.5 dampening=0.1 ",
                                          "optimizer=sgd momentum=0.5 dampening=0.2 ", "optimizer=sgd momentum=0.9 ",
                                          "optimizer=adam beta=1 ", "optimizer=adam beta=2 ",
                                          "optimizer=adam beta=3 "});
  CHECK(grid->ask(5, 100, {}).size() == 2);
  CHECK(grid->ask(7, 1, {}).empty());
}

TEST_CASE("methods that do not learn repeat no configuration of a finite space with conditions until all were tried") {
  for (const char* name : {"random", "sobol"}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      CAPTURE(name, seed);
      std::set<std::string> texts;
      const auto one = sampler(name, finite(), {}, seed);
      for (const Params& params : drawn(*one, 7)) texts.insert(text_of(params));
      CHECK(texts.size() == 7);
      CHECK(one->ask(7, 50, {}).size() == 50);
    }
  }
}

TEST_CASE("a parameter with a condition has values of its whole range, as one without has") {
  const std::string name = GENERATE("random", "sobol", "tpe", "evolution", "nsga2");
  const Space space = {{"optimizer", categorical({word("sgd"), word("adam")})},
                       {"momentum", bounded(Kind::kUniform, 0, 1), {{"optimizer", {word("sgd")}}}},
                       {"beta", bounded(Kind::kUniform, 0, 1), {{"optimizer", {word("adam")}}}},
                       {"wd", bounded(Kind::kUniform, 0, 1)}};
  constexpr int kDraws = 96, kParts = 4;
  static const std::set<std::string> fixed;
  MethodOptions options;  // that many draws to begin with, of a method that learns
  options.tpe.startup_trials = kDraws;
  options.evolution.population = kDraws;
  options.nsga2.population = kDraws;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    CAPTURE(name, seed);
    const auto one = make_sampler(method(name), options, {space, Goal::kMinimize, seed, fixed, {}});
    std::map<std::string, std::vector<int>> counts;
    for (const Params& params : drawn(*one, kDraws)) {
      for (const auto& [parameter, value] : params) {
        const auto* number = std::get_if<double>(&value);
        counts[parameter].resize(kParts);
        if (number != nullptr) ++counts[parameter][static_cast<std::size_t>(std::min(*number, 0.999) * kParts)];
      }
    }
    for (const char* parameter : {"momentum", "beta", "wd"}) {
      CAPTURE(parameter);
      for (const int count : counts[parameter]) CHECK(count >= 2);  // of 12 or 24 on the average
    }
  }
}

TEST_CASE("draws do not depend on how many are asked for at once, nor on a restart") {
  for (const std::string& name : kMethods) {
    CAPTURE(name);
    const std::vector<std::string> texts = {"wd <= lr * 100"};
    const auto one = sampler(name, infinite(), texts), other = sampler(name, infinite(), texts);
    const std::vector<Params> all = drawn(*one, 30);
    History history;
    for (int i = 0; i < 20; ++i) {
      const double value = loss(all[static_cast<std::size_t>(i)]);
      history.push_back({all[static_cast<std::size_t>(i)], {value}, {value}, State::kComplete});
    }
    const std::vector<Params> five = other->ask(20, 5, history);
    REQUIRE(five.size() == 5);
    CHECK(five.front() == all[20]);
    History grown = history;
    for (int i = 0; i < 5; ++i) {
      CHECK(sampler(name, infinite(), texts)->ask(20 + i, 1, grown).at(0) == five[static_cast<std::size_t>(i)]);
      grown.push_back({five[static_cast<std::size_t>(i)]});
    }
  }
}

TEST_CASE("every draw meets the constraints") {
  const std::vector<std::string> texts = {"momentum < wd", "lr * 10 >= wd"};
  for (const std::string& name : kMethods) {
    CAPTURE(name);
    for (const Params& params : drawn(*sampler(name, infinite(), texts), 60)) {
      CHECK(broken(constraints(texts), params) == nullptr);
    }
  }
  const Space numbers = {{"a", bounded(Kind::kIntUniform, 1, 4)}, {"b", bounded(Kind::kIntUniform, 1, 4)}};
  const auto grid = sampler("grid", numbers, {"a <= b"});
  CHECK(grid->size() == 10);
  CHECK(grid->ask(0, 100, {}).size() == 10);
  std::set<std::string> seen;
  for (const Params& params : drawn(*sampler("random", numbers, {"a <= b"}), 10)) seen.insert(text_of(params));
  CHECK(seen.size() == 10);  // none twice
}

TEST_CASE("constraints that nothing meets end in an error that names them") {
  for (const std::string& name : kMethods) {
    CHECK_THROWS_WITH(sampler(name, infinite(), {"lr > 2", "wd < 0.5"})->ask(0, 1, {}),
                      Catch::Contains("'lr > 2', 'wd < 0.5'"));
  }
  CHECK_THROWS_WITH(sampler("grid", finite(), {"beta > 3", "momentum > 1"}), Catch::Contains("'beta > 3'"));
}

TEST_CASE("methods learn about a parameter of few values that others depend on") {
  const Space space = {{"optimizer", categorical({word("sgd"), word("adam")})},
                       {"momentum", bounded(Kind::kUniform, 0, 1), {{"optimizer", {word("sgd")}}}},
                       {"beta", bounded(Kind::kUniform, 0, 1), {{"optimizer", {word("adam")}}}}};
  for (const std::string& name : kByGroups) {
    CAPTURE(name);
    const auto learner = sampler(name, space);
    History history;
    const int draws = name == "cmaes" ? 450 : 110;  // it keeps a category of two values near equal shares
    int good = 0;
    for (int i = 0; i < draws; ++i) {
      Params params = learner->ask(i, 1, history).at(0);
      const bool adam = find_value(params, "beta") != nullptr;
      good += i >= 50 && adam ? 1 : 0;
      const double value = loss(params) + (adam ? 0 : 1);
      history.push_back({std::move(params), {value}, {value}, State::kComplete});
    }
    CHECK(100 * good >= 56 * (draws - 50));  // chance alone gives 50 percent
  }
}

TEST_CASE("methods that learn repeat no configuration of a finite space while another can be found") {
  struct Case {
    Space space;
    std::vector<std::string> texts;
    std::size_t configurations;
  };
  const Distribution number = bounded(Kind::kIntUniform, 1, 4);
  const Distribution never = categorical({word("x"), word("never")}, {1, 0});
  const std::vector<Case> cases = {
      {finite(), {}, 7},
      {finite(), {"beta != 2"}, 6},
      {{{"a", number}, {"b", number}}, {"a <= b"}, 10},
      {{{"a", number}, {"b", bounded(Kind::kIntUniform, 1, 100)}}, {"a * b == 100"}, 3},
      {{{"a", number}, {"w", never}}, {}, 4},
      {{{"a", number}, {"w", never}, {"b", number, {{"a", {integer(1)}}}}}, {}, 7},
  };
  for (const std::string& name : kByGroups) {
    for (const Case& one : cases) {
      if (name == "bohb" && one.texts.empty() && !is_conditional(one.space)) continue;  // its paper's draws repeat
      CAPTURE(name, text_of(drawn(*sampler(name, one.space), 1).front()), one.texts);
      std::set<std::string> texts;
      const std::vector<Params> all =
          drawn(*sampler(name, one.space, one.texts), static_cast<int>(one.configurations) + 2);
      for (const Params& params : all) texts.insert(text_of(params));
      CHECK(all.size() == one.configurations + 2);
      CHECK(texts.size() == one.configurations);
    }
  }
}

TEST_CASE("a grid is walked to its end, however many combinations break its constraints") {
  const Space space = {{"a", bounded(Kind::kIntUniform, 1, 1100)}, {"b", bounded(Kind::kIntUniform, 1, 1000)}};
  CHECK(sampler("grid", space, {"a > 1050"})->size() == 50'000);
}

TEST_CASE("a method that learns finds what meets rare constraints") {
  const Distribution number = bounded(Kind::kIntUniform, 1, 1000);
  const Space space = {{"a", number}, {"b", number}};
  const std::vector<std::string> texts = {"a + b < 7"};  // 15 of 1,000,000
  CHECK(broken(constraints(texts), sampler("tpe", space, texts)->ask(0, 1, {}).at(0)) == nullptr);
}

TEST_CASE("TPE learns about a parameter from the trials that have it") {
  // The best momentum is near 0.3, however many trials have none.
  const auto tpe = sampler("tpe", {{"optimizer", categorical({word("sgd"), word("adam")}, {0.5, 0.5})},
                                   {"momentum", bounded(Kind::kUniform, 0, 1), {{"optimizer", {word("sgd")}}}}});
  History history;
  for (int i = 0; i < 120; ++i) {
    const Params params = tpe->ask(i, 1, history).at(0);
    const ParamValue* momentum = find_value(params, "momentum");
    const double value = momentum == nullptr ? 0.5 : std::abs(std::get<double>(*momentum) - 0.3);
    history.push_back({params, {value}, {value}, State::kComplete});
  }
  int near = 0, with = 0;
  for (std::size_t i = 60; i < history.size(); ++i) {
    const ParamValue* momentum = find_value(history[i].params, "momentum");
    if (momentum == nullptr) continue;
    ++with;
    near += std::abs(std::get<double>(*momentum) - 0.3) < 0.1 ? 1 : 0;
  }
  CHECK(with > 3);
  CHECK(near * 2 > with);
}

TEST_CASE("constraints are comparisons of formulas") {
  const Params params = {{"a", std::int64_t{3}}, {"b", 0.5}, {"flag", true}, {"word", std::string("x")}};
  const std::vector<std::pair<const char*, bool>> cases = {
      {"a <= 3", true},    {"a < 3", false},    {"a >= b", true},          {"b > a", false},           {"a == 3", true},
      {"a != 3", false},   {"flag == 1", true}, {"a*b == 1.5", true},      {"2**a > min(a, 7)", true}, {"c < 1", true},
      {"word < 1", false}, {"word != 1", true}, {"log(b - 1) < 5", false}, {"a / 0 > 1", true},
  };
  for (const auto& [text, wanted] : cases) {
    CAPTURE(text);
    CHECK(Constraint::parse(text).holds(params) == wanted);
  }
  CHECK(Constraint::parse("a + b < a").names() == std::vector<std::string>{"a", "b"});
  for (const char* text :
       {"", "a", "a <", "< a", "a < b < 3", "a = 3", "a <> 3", "mean(a) < 3", "a < (b", "foo(a) < 1"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(Constraint::parse(text), hfta::Error);
  }
}
