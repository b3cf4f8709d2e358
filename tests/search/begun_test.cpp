// What a study begins with: points, and the trials of an earlier study.
#include "search/sampler/begun.hpp"

#include <catch2/catch.hpp>
#include <memory>
#include <set>

#include "search/methods.hpp"
#include "tests/trials/distributions.hpp"

using namespace hfta::search;
using namespace hfta::trials;
using namespace hfta::trials::testing;
using Kind = DistributionKind;

namespace {

const Space kSpace = {{"x", bounded(Kind::kUniform, 0, 1)}, {"n", bounded(Kind::kIntUniform, 1, 8)}};

std::unique_ptr<Sampler> sampler(const std::string& name, std::vector<Params> points, History prior = {},
                                 const Space& space = kSpace) {
  static const std::set<std::string> fixed;
  MethodOptions options;
  return make_sampler(method(name), options,
                      {space, Goal::kMinimize, 1, fixed, {}, std::move(points), std::move(prior)});
}

double x_of(const Params& params) { return std::get<double>(params.at(0).second); }

History around(double best, int trials) {
  History history;
  for (int i = 0; i < trials; ++i) {
    const double x = static_cast<double>(i) / trials;
    history.push_back(
        {{{"x", x}, {"n", integer(1 + i % 8)}}, {std::abs(x - best)}, {std::abs(x - best)}, State::kComplete});
  }
  return history;
}

}  // namespace

TEST_CASE("points come first, with draws of what they lack") {
  for (const char* name : {"random", "tpe"}) {
    const auto pointed = sampler(name, {{{"x", 0.5}, {"n", integer(3)}}, {{"n", integer(4)}}});
    const std::vector<Params> first = pointed->ask(0, 4, {});
    REQUIRE(first.size() == 4);
    CHECK(first[0] == Params{{"x", 0.5}, {"n", integer(3)}});
    CHECK(first[1][1].second == integer(4));
    CHECK(is_whole(kSpace, first[1]));
    CHECK(pointed->ask(1, 1, {}).at(0) == first[1]);
    CHECK(sampler(name, {})->ask(0, 2, {}) == std::vector<Params>{first[2], first[3]});
    CHECK(pointed->ask(3, 1, {}).at(0) == first[3]);
  }
  const Space list = {{"n", bounded(Kind::kIntUniform, 1, 8)}};
  const auto grid = sampler("grid", {{{"n", integer(5)}}}, {}, list);
  CHECK(grid->size() == 9);
  CHECK(grid->ask(0, 100, {}).size() == 9);
  CHECK(grid->ask(0, 2, {})[1][0].second == integer(1));
}

TEST_CASE("a method that learns begins with what an earlier study has found") {
  const History prior = around(0.2, 60);
  int near = 0;
  for (int i = 0; i < 30; ++i)
    near += std::abs(x_of(sampler("tpe", {}, prior)->ask(i, 1, {}).at(0)) - 0.2) < 0.2 ? 1 : 0;
  CHECK(near > 20);
  // Behind them come the study's own.
  History own = around(0.8, 60);
  own.insert(own.begin(), prior.begin(), prior.end());
  CHECK(sampler("tpe", {}, prior)->ask(60, 1, around(0.8, 60)) == sampler("tpe", {})->ask(60, 1, own));
  CHECK(sampler("random", {}, prior)->ask(0, 5, {}) == sampler("random", {})->ask(0, 5, {}));
  // DEHB's brackets count the study's own draws only: the first are random.
  CHECK(sampler("dehb", {}, prior)->ask(0, 5, {}) == sampler("random", {})->ask(0, 5, {}));
}
