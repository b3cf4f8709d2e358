// DEHB: its layout, its budgets, and its offspring worked by hand from the paper's rules.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <set>

#include "driven.hpp"
#include "search/dehb_layout.hpp"
#include "search/sampler.hpp"
#include "search/sampler/differential.hpp"
#include "tests/trials/distributions.hpp"

using namespace hfta;
using namespace hfta::search;
using namespace hfta::search::testing;
using namespace hfta::trials::testing;
using trials::Goal;
using trials::Params;
using Kind = trials::DistributionKind;

namespace {

const HyperbandOptions kNine{1, 9, 3};  // 9x1 3x3 1x9, 5x3 1x9, 3x9
const trials::Space kPlane = {{"x", bounded(Kind::kUniform, 0, 1)}, {"y", bounded(Kind::kUniform, 0, 1)}};

SeenTrial seen(double x, double y, std::vector<double> values) {
  const std::vector<double> last(values.end() - (values.empty() ? 0 : 1), values.end());
  return {{{"x", x}, {"y", y}}, std::move(values), last, State::kPruned};
}

double number(const Params& params, std::size_t i) { return std::get<double>(params.at(i).second); }

}  // namespace

TEST_CASE("mutation and crossover are differential evolution's") {
  CountedRandom random(1, Stream::kTpe, 0);
  const Genome mutant = mutated({0.2, 0.5, 0.9}, {0.6, 0.1, 0.8}, {0.4, 0.3, 0.4}, 0.5, random);
  CHECK(mutant[0] == Approx(0.3));
  CHECK(mutant[1] == Approx(0.4));
  CHECK(mutant[2] >= 0);  // 1.1 is outside: drawn anew
  CHECK(mutant[2] <= 1);
  CHECK(mutant[2] == CountedRandom(1, Stream::kTpe, 0).uniform());
  const Genome target = {0, 0, 0, 0}, other = {1, 1, 1, 1};
  CHECK(crossed(target, other, 1, random) == other);
  for (int i = 0; i < 20; ++i) {  // one number at least is the mutant's
    const Genome child = crossed(target, other, 0, random);
    CHECK(std::count(child.begin(), child.end(), 1.0) == 1);
  }
  // What is drawn: which number is the mutant's in any case, and then one number for each.
  CountedRandom drawn(5, Stream::kTpe, 7), again(5, Stream::kTpe, 7);
  const auto always = static_cast<std::size_t>(again.below(4));
  Genome wanted = target;
  for (std::size_t i = 0; i < 4; ++i) {
    if (again.uniform() < 0.5 || i == always) wanted[i] = 1;
  }
  CHECK(crossed(target, other, 0.5, drawn) == wanted);
}

TEST_CASE("DEHB draws no category of probability 0") {
  const trials::Space space = {{"w", categorical({word("never"), word("a"), word("b"), word("not")}, {0, 0.5, 0.5, 0})},
                               {"x", bounded(Kind::kUniform, 0, 1)}};
  const auto dehb = make_dehb(space, 3, Goal::kMinimize, {}, kNine);
  History history = {{{{"w", word("not")}, {"x", 0.5}}, {0}, {0}, State::kComplete}};  // somebody enqueued it
  std::set<trials::ParamValue> drawn;
  for (int i = 0; i < 60; ++i) {
    Params params = dehb->ask(i, 1, history).at(0);
    drawn.insert(params.front().second);
    history.push_back({std::move(params), std::vector<double>(9, i % 7), {1.0 * (i % 7)}, State::kComplete});
  }
  CHECK(drawn == std::set<trials::ParamValue>{word("a"), word("b")});
}

TEST_CASE("draws of DEHB are laid out as the paper's brackets") {
  const DehbLayout layout(kNine);
  CHECK(layout.first_pass() == 9 + 5 + 3);
  CHECK(layout.later_pass() == 13 + 6 + 3);
  CHECK(layout.budgets() == std::vector<int>{1, 3, 9});
  CHECK(layout.population(1) == 9);
  CHECK(layout.population(3) == 5);
  CHECK(layout.population(9) == 3);
  struct Case {
    int draw;
    bool first;
    std::size_t bracket, rung;
    int epochs, parents;
  };
  const std::vector<Case> cases = {
      {0, true, 0, 0, 1, 9},   {8, true, 0, 0, 1, 9},   {9, true, 1, 0, 3, 5},   {14, true, 2, 0, 9, 3},
      {16, true, 2, 0, 9, 3},  {17, false, 0, 0, 1, 9}, {26, false, 0, 1, 3, 3}, {29, false, 0, 2, 9, 1},
      {30, false, 1, 0, 3, 5}, {35, false, 1, 1, 9, 1}, {36, false, 2, 0, 9, 3}, {38, false, 2, 0, 9, 3},
      {39, false, 0, 0, 1, 9}, {61, false, 0, 0, 1, 9},
  };
  for (const Case& c : cases) {
    CAPTURE(c.draw);
    const DehbPosition place = layout.place(c.draw);
    CHECK(place.first_pass == c.first);
    CHECK(place.bracket == c.bracket);
    CHECK(place.rung == c.rung);
    CHECK(place.epochs == c.epochs);
    CHECK(place.parents == c.parents);
  }
  CHECK(layout.later_cost(17) == 0);
  CHECK(layout.later_cost(17 + 22) == 9 + 9 + 9 + 15 + 9 + 27);
  CHECK(layout.later_cost(17 + 10) == 9 + 3);
}

TEST_CASE("DEHB's first pass is Hyperband's, and later trials train as long as their rung says") {
  for (const std::vector<int>& caps : std::vector<std::vector<int>>{{60}, {10, 17, 45}, {5}, {}}) {
    for (const Curve& curve : {Curve(crossing), Curve(tied), Curve(diverging), Curve(doomed)}) {
      const int trials = caps.empty() ? 17 : caps.back();
      const auto made = [&] { return make_dehb_scheduler(kNine, Goal::kMinimize, caps); };
      CHECK(made()->capacity() == trials);
      const std::vector<testing::Outcome> wanted = drive(*made(), trials, curve, 1, 1);
      for (unsigned seed = 2; seed < 6; ++seed) CHECK(drive(*made(), trials, curve, 5, seed) == wanted);
      std::vector<int> early;
      for (const int cap : caps) early.push_back(std::min(cap, 17));
      const int first = std::min(trials, 17);
      const auto hyperband = make_hyperband(kNine, Goal::kMinimize, early);
      const std::vector<testing::Outcome> those = drive(*hyperband, first, curve, 1, 1);
      CHECK(std::equal(those.begin(), those.end(), wanted.begin()));
      const DehbLayout layout(kNine);
      for (int trial = 17; trial < trials; ++trial) {
        const testing::Outcome& outcome = wanted[static_cast<std::size_t>(trial)];
        if (outcome.state == State::kFail) continue;
        CHECK(outcome.epochs == layout.place(trial).epochs);
        CHECK(outcome.state == (outcome.epochs == 9 ? State::kComplete : State::kPruned));
      }
    }
  }
  CHECK(make_dehb_scheduler(kNine, Goal::kMinimize, {39})->planned_epochs(17, 22) == 78);
}

TEST_CASE("DEHB's offspring descend from the subpopulations that the paper names") {
  // The first bracket: nine trials, the best three of which were promoted, and the best of these again.
  History history;
  for (int i = 0; i < 9; ++i) history.push_back(seen(0.1 * i, 0.05 * i, {1.0 * i}));
  for (int i = 0; i < 3; ++i) history[static_cast<std::size_t>(i)].curve = {1.0 * i, 0.5, 5.0 - i};
  history[2].curve.resize(9, 1.0);
  const auto dehb = make_dehb(kPlane, 1, Goal::kMinimize, {}, kNine);
  // Draw 9 begins the second bracket, at 3 epochs, whose subpopulation has three members: its target is the first, and
  // the mutant is made of all three. x = 0, 0.1, 0.2 and y = 0, 0.05, 0.1: what is neither the target's is a + (b - c)
  // / 2.
  const Params child = dehb->ask(9, 1, history).at(0);
  std::set<int> possible;  // in hundredths: of x, if it is the mutant's and not drawn anew
  for (int a = 0; a < 3; ++a) {
    for (int b = 0; b < 3; ++b) {
      for (int c = 0; c < 3; ++c) {
        if (a != b && b != c && a != c) possible.insert(10 * a + 5 * (b - c));
      }
    }
  }
  possible.insert(0);
  possible.erase(-5);
  const double x = number(child, 0) * 100;
  const bool known = possible.contains(static_cast<int>(std::lround(x))) && std::abs(x - std::round(x)) < 1e-9;
  CHECK((known || number(child, 0) != 0));
  CHECK(dehb->ask(9, 1, history) == std::vector<Params>{child});
  // Without crossover's mutant and with F = 0, a child has one number of a parent and the rest of its target.
  const auto plain = make_dehb(kPlane, 1, Goal::kMinimize, {.mutation_percent = 0, .crossover_percent = 0}, kNine);
  for (int i = 0; i < 4; ++i) {
    const Params one = plain->ask(9 + i, 1, history).at(0);
    const double target = i < 3 ? 0.1 * i : -1;  // whose turn it is: the subpopulation in the order of draws
    if (target >= 0) CHECK((number(one, 0) == Approx(target) || number(one, 1) == Approx(target / 2)));
    const double px = number(one, 0), py = number(one, 1);
    if (i < 3)
      CHECK((std::abs(px * 10 - std::round(px * 10)) < 1e-9 && std::abs(py * 20 - std::round(py * 20)) < 1e-9));
    history.push_back({one});
  }
}

TEST_CASE("an offspring takes its target's place unless it is worse") {
  const auto plain = make_dehb({{"x", bounded(Kind::kUniform, 0, 1)}}, 1, Goal::kMinimize,
                               {.mutation_percent = 0, .crossover_percent = 100}, kNine);
  const auto one = [](double x, std::vector<double> values) {
    return SeenTrial{{{"x", x}}, values, {values.back()}, State::kPruned};
  };
  History history;
  for (int i = 0; i < 9; ++i) history.push_back(one(0.1 * i, {1.0 * i}));
  for (int i = 9; i < 14; ++i) history.push_back(one(0.5, {9, 9, 9}));
  for (int i = 14; i < 17; ++i) history.push_back(one(0.5, {9, 9, 9, 9, 9, 9, 9, 9, 9}));
  // Draws 17 to 25 have the nine of the first bracket as targets, one after another. All of them turn out best at 0.77.
  for (int i = 0; i < 9; ++i) history.push_back(one(0.77, {-1.0}));
  // So the best three after one epoch, the parents of draw 26, are all at 0.77.
  CHECK(number(plain->ask(26, 1, history).at(0), 0) == Approx(0.77));
  for (int i = 17; i < 26; ++i) history[static_cast<std::size_t>(i)] = one(0.77, {100.0});
  const double x = number(plain->ask(26, 1, history).at(0), 0);  // none was taken in: one of 0, 0.1, 0.2
  CHECK(x < 0.21);
  // Of what has failed, or is not known, nothing descends.
  for (int i = 17; i < 26; ++i) history[static_cast<std::size_t>(i)] = one(0.77, {std::nan("")});
  CHECK(number(plain->ask(26, 1, history).at(0), 0) == x);
}

TEST_CASE("DEHB takes spaces of one value, of words and of conditions") {
  const trials::Space space = {{"act", categorical({word("relu"), word("tanh"), word("gelu")})},
                               {"one", constant(word("x"))},
                               {"point", bounded(Kind::kUniform, 0.5, 0.5)},
                               {"n", bounded(Kind::kIntUniform, 1, 4)},
                               {"a", bounded(Kind::kUniform, 0, 1), {{"act", {word("tanh")}}}}};
  const auto dehb = make_dehb(space, 2, Goal::kMaximize, {}, kNine);
  History history;
  std::set<std::string> words;
  for (int i = 0; i < 100; ++i) {
    const Params params = dehb->ask(i, 1, history).at(0);
    CHECK(trials::is_whole(space, params));
    CHECK(*trials::find_value(params, "point") == trials::ParamValue(0.5));
    words.insert(trials::to_text(params[0].second));
    history.push_back({params, std::vector<double>(9, 0.01 * i), {0.01 * i}, State::kComplete});
  }
  CHECK(words.size() == 3);
}
