// What every sampler keeps, in every space and whatever the history holds.

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "search/choices.hpp"
#include "search/completion.hpp"
#include "search/methods.hpp"
#include "search/sampler/untried.hpp"
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

const double kInf = std::numeric_limits<double>::infinity();

struct Named {
  std::string name;
  Space space;
};

// Every kind of distribution, and what is at the edge of one.
std::vector<Named> spaces() {
  const Distribution unit = bounded(Kind::kUniform, 0, 1);
  return {
      {"no parameter", {}},
      {"a constant", {{"c", constant(word("x"))}}},
      {"one number", {{"x", unit}}},
      {"one category", {{"w", categorical({word("a"), word("b"), word("c")})}}},
      {"one value of each",
       {{"a", bounded(Kind::kUniform, 2, 2)}, {"b", categorical({integer(7)})}, {"c", constant(true)}}},
      {"bounded",
       {{"a", bounded(Kind::kUniform, -3, 5)},
        {"b", bounded(Kind::kLogUniform, -9, -1)},
        {"c", bounded(Kind::kLogUniformValues, 1e-5, 1)},
        {"d", bounded(Kind::kInvLogUniform, -1, 5)},
        {"e", bounded(Kind::kInvLogUniformValues, 0.01, 100)}}},
      {"steps",
       {{"a", bounded(Kind::kQUniform, 0, 0.9, 0.1)},
        {"b", bounded(Kind::kQLogUniformValues, 8, 512, 1, true)},
        {"c", bounded(Kind::kQLogUniform, 0, 5, 3)},
        {"d", bounded(Kind::kIntUniform, -1000, 1000)}}},
      {"normal",
       {{"a", normal(Kind::kNormal, 3, 2)},
        {"b", normal(Kind::kQNormal, 0, 10, 2, true)},
        {"c", normal(Kind::kLogNormal, -2, 1)},
        {"d", normal(Kind::kQLogNormal, 2, 1, 1)}}},
      {"mixed",
       {{"lr", bounded(Kind::kLogUniformValues, 1e-5, 1)},
        {"n", bounded(Kind::kIntUniform, 1, 500)},
        {"w", categorical({word("a"), word("never"), integer(3), 0.5, true, std::monostate()},
                          {0.5, 0, 0.2, 0.1, 0.1, 0.1})},
        {"q", bounded(Kind::kQUniform, 0, 0.9, 0.1)},
        {"c", constant(integer(3))}}},
      {"tiny and huge",
       {{"a", bounded(Kind::kUniform, 0, 1e-300)},
        {"b", bounded(Kind::kUniform, -1e308, 1e308)},
        {"c", bounded(Kind::kLogUniformValues, 1e-300, 1e300)},
        {"d", bounded(Kind::kUniform, 1, 1 + 1e-15)}}},
      {"small and finite",
       {{"a", bounded(Kind::kIntUniform, 1, 4)}, {"b", categorical({word("x"), word("y"), word("z")})}}},
      {"large and finite", {{"a", bounded(Kind::kIntUniform, 1, 3000)}, {"b", bounded(Kind::kIntUniform, 1, 3000)}}},
  };
}

const std::set<std::string> kNone;

// Methods that sample any space, each sampler once.
std::vector<const Method*> samplers() {
  std::vector<const Method*> all;
  for (const Method& method : methods()) {
    if (method.scheduler == nullptr && !method.needs_list) all.push_back(&method);
  }
  return all;
}

std::unique_ptr<Sampler> make(const Method& method, const Space& space, std::uint64_t seed = 3,
                              Goal goal = Goal::kMinimize) {
  return method.sampler({}, {.space = space, .goal = goal, .seed = seed, .fixed = kNone});
}

History history_of(const Space& space, int count, double (*value)(int trial)) {
  History history;
  for (Params& params : make_random(space, 11)->ask(0, count, {})) {
    const double got = value(static_cast<int>(history.size()));
    history.push_back({std::move(params), {got}, {}, State::kFail});
    if (std::isfinite(got)) history.back().values = {got};
    if (std::isfinite(got)) history.back().ended = State::kComplete;
  }
  return history;
}

double uneven(int trial) { return std::sin(1.7 * trial) + 0.01 * trial; }

// Histories that a study can have and that no formula should stumble over.
std::vector<std::pair<std::string, History>> histories(const Space& space) {
  std::vector<std::pair<std::string, History>> all;
  all.emplace_back("nothing", History());
  all.emplace_back("one that ended", history_of(space, 1, uneven));
  all.emplace_back("ended", history_of(space, 25, uneven));
  all.emplace_back("all failed", history_of(space, 25, [](int) { return std::nan(""); }));
  all.emplace_back("equal", history_of(space, 25, [](int) { return 3.25; }));
  all.emplace_back("huge", history_of(space, 25, [](int trial) {
                     return trial % 3 == 0 ? 1e300 : trial == 4 ? -1.7e308 : 1.7e308;
                   }));
  all.emplace_back("tiny", history_of(space, 25, [](int trial) { return trial * 1e-320; }));
  all.emplace_back("diverging", history_of(space, 25, [](int trial) {
                     return trial % 4 == 0 ? (trial % 8 == 0 ? -kInf : kInf) : uneven(trial);
                   }));
  History running = history_of(space, 30, uneven);
  for (std::size_t i = 12; i < running.size(); ++i) running[i].ended.reset();
  for (std::size_t i = 20; i < running.size(); ++i) running[i] = {running[i].params};
  all.emplace_back("running", running);
  History pruned = history_of(space, 30, uneven);
  for (std::size_t i = 0; i < pruned.size(); ++i) pruned[i].ended = i % 5 == 4 ? State::kComplete : State::kPruned;
  all.emplace_back("pruned", pruned);
  for (SeenTrial& trial : pruned) trial.ended = State::kPruned;
  all.emplace_back("all pruned", pruned);
  History same = history_of(space, 25, uneven);
  for (SeenTrial& trial : same) trial.params = same[0].params;
  all.emplace_back("one configuration", same);
  History lacking = history_of(space, 25, uneven);
  for (std::size_t i = 0; i < lacking.size(); i += 3) lacking[i].params.clear();
  if (!space.empty()) all.emplace_back("without parameters", lacking);
  return all;
}

bool is_of(const Params& params, const Space& space) {
  if (params.size() != space.size()) return false;
  for (std::size_t i = 0; i < space.size(); ++i) {
    if (params[i].first != space[i].name) return false;
    const auto admitted = admit(space[i].distribution, params[i].second);
    if (!admitted || *admitted != params[i].second) return false;
    const Distribution& d = space[i].distribution;
    for (std::size_t v = 0; v < d.probabilities.size(); ++v) {
      if (d.probabilities[v] == 0 && d.values[v] == params[i].second) return false;
    }
  }
  return true;
}

std::string text_of(const Params& params) {
  std::string text;
  for (const auto& [name, value] : params) text += name + "=" + trials::to_text(value) + " ";
  return text;
}

}  // namespace

TEST_CASE("every sampler draws what the space holds, in every space and behind every history") {
  for (const Method* method : samplers()) {
    for (const Named& named : spaces()) {
      for (const auto& [what, history] : histories(named.space)) {
        INFO(method->name << ", " << named.name << ", " << what);
        const auto drawn = make(*method, named.space)->ask(static_cast<int>(history.size()), 3, history);
        REQUIRE(drawn.size() == 3);
        for (const Params& params : drawn) {
          INFO(text_of(params));
          REQUIRE(is_of(params, named.space));
        }
      }
    }
  }
}

TEST_CASE("every sampler: k draws at once are k draws one by one, whatever was asked before") {
  for (const Method* method : samplers()) {
    for (const Named& named : spaces()) {
      for (const auto& [what, history] : histories(named.space)) {
        if (what != "ended" && what != "running" && what != "diverging" && what != "nothing") continue;
        INFO(method->name << ", " << named.name << ", " << what);
        const int first = static_cast<int>(history.size());
        const auto sampler = make(*method, named.space);
        const std::vector<Params> at_once = sampler->ask(first, 4, history);
        History grown = history;
        for (int i = 0; i < 4; ++i) {
          REQUIRE(make(*method, named.space)->ask(first + i, 1, grown).at(0) == at_once[static_cast<std::size_t>(i)]);
          grown.push_back({at_once[static_cast<std::size_t>(i)]});
        }
        (void)sampler->ask(first + 40, 2, history_of(named.space, 14, uneven));
        REQUIRE(sampler->ask(first, 4, history) == at_once);
      }
    }
  }
}

TEST_CASE("every method's row says whether its sampler learns") {
  const Space space = {{"a", categorical({integer(1), integer(2)})}, {"b", bounded(Kind::kUniform, 0, 1)}};
  const Space lists = {space[0]};
  for (const Method& method : methods()) {
    INFO(method.name);
    const Space& searched = method.needs_list ? lists : space;
    CHECK(learns(method, {}) == make(method, searched)->learns());
    MethodOptions options;
    options.sampler = "tpe";
    if (method.takes_sampler) CHECK(learns(method, options));
  }
}

TEST_CASE("every sampler depends on the seed") {
  const Space space = spaces()[5].space;
  for (const Method* method : samplers()) {
    INFO(method->name);
    const History history = history_of(space, 20, uneven);
    CHECK(make(*method, space, 1)->ask(20, 4, history) != make(*method, space, 2)->ask(20, 4, history));
    CHECK(make(*method, space, 1)->ask(0, 4, {}) != make(*method, space, 2)->ask(0, 4, {}));
  }
}

TEST_CASE("every sampler tries a finite space out before a configuration comes again") {
  const Space space = {{"a", bounded(Kind::kIntUniform, 1, 4)},
                       {"b", categorical({word("x"), word("y"), word("z")})},
                       {"c", bounded(Kind::kQUniform, 0, 1, 0.5)}};
  for (const Method* method : samplers()) {
    for (const int batch : {1, 5}) {
      INFO(method->name << ", " << batch << " at once");
      const auto sampler = make(*method, space);
      History history;
      std::set<std::string> seen;
      for (int n = 0; n < 36; n += batch) {
        for (Params& params : sampler->ask(n, std::min(batch, 36 - n), history)) {
          CHECK(seen.insert(text_of(params)).second);
          history.push_back({std::move(params), {1.0 * n}, {1.0 * n}, State::kComplete});
        }
      }
      CHECK(seen.size() == 36);
      CHECK(sampler->ask(36, 2, history).size() == 2);
    }
  }
}

TEST_CASE("every sampler maximizes as it minimizes") {
  for (const Method* method : samplers()) {
    for (const Named& named : spaces()) {
      INFO(method->name << ", " << named.name);
      const auto down = make(*method, named.space), up = make(*method, named.space, 3, Goal::kMaximize);
      History low, high;
      for (int n = 0; n < 24; n += 2) {
        const std::vector<Params> a = down->ask(n, 2, low), b = up->ask(n, 2, high);
        REQUIRE(a == b);
        for (int i = 0; i < 2; ++i) {
          const double value = uneven(n + i);
          low.push_back({a[static_cast<std::size_t>(i)], {value}, {value}, State::kComplete});
          high.push_back({a[static_cast<std::size_t>(i)], {-value}, {-value}, State::kComplete});
        }
      }
    }
  }
}

TEST_CASE(
    "methods that learn repeat no configuration of an infinite space, though its best one is at an end of the range") {
  const std::string name = GENERATE("tpe", "gp", "cmaes", "evolution", "nsga2");
  const std::uint64_t seed = GENERATE(1, 2);
  const bool conditional = GENERATE(false, true);
  CAPTURE(name, seed, conditional);
  Space space = {{"a", bounded(Kind::kUniform, 0, 1)}, {"b", bounded(Kind::kLogUniformValues, 1e-4, 1)}};
  if (conditional) {
    space.push_back({"c", categorical({word("x"), word("y")})});
    space[1].when = {{"c", {word("x")}}};
  }
  static const std::set<std::string> nothing;
  const auto sampler = make_sampler(method(name), {}, {space, Goal::kMinimize, seed, nothing});
  History history;
  std::set<std::string> different;
  for (int n = 0; n < 60; ++n) {
    Params params = sampler->ask(n, 1, history).at(0);
    different.insert(key_of(params));
    double value = 0;
    for (const auto& [parameter, drawn] : params) {
      if (const auto* number = std::get_if<double>(&drawn)) value -= *number;
    }
    history.push_back({std::move(params), {value}, {value}, State::kComplete});
  }
  CHECK(different.size() == 60);
}
