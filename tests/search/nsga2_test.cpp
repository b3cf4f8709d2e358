// NSGA-II: who its parents are, what children are like, and that it finds fronts.

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>

#include "search/sampler.hpp"
#include "tests/trials/distributions.hpp"
#include "trials/pareto.hpp"

using namespace hfta;
using namespace hfta::search;
using namespace hfta::trials::testing;
using trials::Goal;
using trials::Params;
using trials::Point;
using trials::Space;
using trials::State;

namespace {

const std::vector<Goal> kBothDown = {Goal::kMinimize, Goal::kMinimize};

Space numbers(int count) {
  Space space;
  for (int i = 0; i < count; ++i) {
    space.push_back({"x" + std::to_string(i), bounded(DistributionKind::kUniform, 0, 1)});
  }
  return space;
}

double number(const Params& params, std::size_t i) { return std::get<double>(params.at(i).second); }

SeenTrial complete(Params params, const std::vector<double>& values) {
  return {std::move(params), {values.front()}, values, State::kComplete};
}

// ZDT1 (Zitzler, Deb and Thiele, Evolutionary Computation 8(2), 2000): its front is f2 = 1 - sqrt(f1).
std::vector<double> zdt1(const Params& params) {
  double sum = 0;
  for (std::size_t i = 1; i < params.size(); ++i) sum += number(params, i);
  const double g = 1 + 9 * sum / static_cast<double>(params.size() - 1), first = number(params, 0);
  return {first, g * (1 - std::sqrt(first / g))};
}

// The values that ZDT1's front dominates up to (1, 1) have the volume 2/3.
double volume_after(Sampler& sampler, int trials, int batch) {
  History history;
  std::vector<Point> points;
  for (int n = 0; n < trials; n += batch) {
    for (Params& params : sampler.ask(n, batch, history)) {
      points.push_back(zdt1(params));
      history.push_back(complete(std::move(params), points.back()));
    }
  }
  return trials::hypervolume(points, {1, 1});
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// A trial for each word: those that are good are the first front, the others are behind them.
bool is_good(const std::string& w) { return w == "a" || w == "b" || w == "c"; }
Space words() {
  return {{"w", categorical({word("a"), word("b"), word("c"), word("d"), word("e"), word("f"), word("g"), word("h")})},
          {"x", bounded(DistributionKind::kUniform, 0, 1)}};
}
History history_of_words() {
  History history;
  int i = 0;
  for (const char* w : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
    const double behind = is_good(w) ? 0 : 10;
    history.push_back(complete({{"w", std::string(w)}, {"x", 0.1 + 0.1 * i}}, {behind + i, behind - i}));
    ++i;
  }
  return history;
}

}  // namespace

TEST_CASE("NSGA-II draws Sobol points until as many trials are COMPLETE as its population has") {
  const Space space = numbers(2);
  const auto sampler = make_nsga2(space, 4, kBothDown, {.population = 5});
  const auto sobol = make_sobol(space, 4);
  CHECK(sampler->learns());
  History history;
  for (int n = 0; n < 5; ++n) {
    CHECK(sampler->ask(n, 3, history) == sobol->ask(n, 3, {}));
    history.push_back(complete(sobol->ask(n, 1, {}).at(0), {1.0 * n, -1.0 * n}));
  }
  CHECK(sampler->ask(5, 3, history) != sobol->ask(5, 3, {}));
  for (const State other : {State::kFail, State::kPruned}) {  // these are no parents
    History fewer = history;
    fewer.back().ended = other;
    CHECK(sampler->ask(5, 3, fewer) == sobol->ask(5, 3, {}));
  }
  History running = history;
  running.back().ended.reset();
  CHECK(sampler->ask(5, 3, running) == sobol->ask(5, 3, {}));
  History one_value = history;
  one_value.back().values.resize(1);  // of a study of one objective, say
  CHECK(sampler->ask(5, 3, one_value) == sobol->ask(5, 3, {}));
}

TEST_CASE("NSGA-II's parents are of the best fronts") {
  const auto sampler = make_nsga2(words(), 1, kBothDown, {.population = 3});
  const std::vector<Params> children = sampler->ask(8, 400, history_of_words());
  double good = 0;
  for (const Params& child : children) good += is_good(trials::to_text(child[0].second)) ? 1 : 0;
  // A word is mutated every second time, into one of the three in three cases of eight: less than 0.69 of the children
  // have one, since those that are like a parent are drawn anew.
  CHECK(good > 0.55 * 400);
  CHECK(good < 0.75 * 400);
}

TEST_CASE("NSGA-II's goals decide who is good") {
  const auto sampler = make_nsga2(words(), 1, {Goal::kMaximize, Goal::kMaximize}, {.population = 3});
  double good = 0;
  for (const Params& child : sampler->ask(8, 400, history_of_words())) {
    good += is_good(trials::to_text(child[0].second)) ? 1 : 0;
  }
  CHECK(good < 0.3 * 400);  // only those by chance
}

TEST_CASE("NSGA-II prefers what is less crowded within a front") {
  // Of eight on one front six lie close together; each has a word of its own, and there is room for four.
  History history;
  const std::vector<double> firsts = {0, 0.490, 0.495, 0.5, 0.505, 0.51, 0.515, 1};
  const char* names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
  for (std::size_t i = 0; i < firsts.size(); ++i) {
    history.push_back(complete({{"w", std::string(names[i])}, {"x", firsts[i]}}, {firsts[i], 1 - firsts[i]}));
  }
  const auto sampler = make_nsga2(words(), 1, kBothDown, {.population = 4});
  int ends = 0;
  std::map<std::string, int> counts;
  for (const Params& child : sampler->ask(8, 400, history)) ++counts[trials::to_text(child[0].second)];
  for (const char* end : {"a", "h", "b", "g"}) ends += counts[end];
  CHECK(ends > 0.6 * 400);                                       // of four words in eight
  CHECK(counts["a"] + counts["h"] > counts["b"] + counts["g"]);  // the ends win more tournaments
}

TEST_CASE("NSGA-II draws the same, at once or one by one, from seed, draw and history alone") {
  const Space space = numbers(3);
  History history;
  for (Params& params : make_random(space, 2)->ask(0, 30, {})) {
    const std::vector<double> values = zdt1(params);
    history.push_back(complete(std::move(params), values));
  }
  const std::vector<Params> whole = make_nsga2(space, 7, kBothDown, {})->ask(30, 6, history);
  const auto sampler = make_nsga2(space, 7, kBothDown, {});
  for (int i = 0; i < 6; ++i) CHECK(sampler->ask(30 + i, 1, history).at(0) == whole.at(static_cast<std::size_t>(i)));
  CHECK(make_nsga2(space, 8, kBothDown, {})->ask(30, 6, history) != whole);
  CHECK(std::set<Params>(whole.begin(), whole.end()).size() == 6);
}

TEST_CASE("NSGA-II dominates more than Sobol points do, one at a time and in batches") {
  const Space space = numbers(6);
  for (const int batch : {1, 10}) {
    std::vector<double> ours, sobols;
    for (std::uint64_t seed = 0; seed < 9; ++seed) {
      ours.push_back(volume_after(*make_nsga2(space, seed, kBothDown, {}), 300, batch));
      sobols.push_back(volume_after(*make_sobol(space, seed), 300, batch));
    }
    CAPTURE(batch, median(ours), median(sobols));
    CHECK(median(ours) > 0.3);  // of 2/3
    CHECK(median(sobols) < 0.1);
  }
}
