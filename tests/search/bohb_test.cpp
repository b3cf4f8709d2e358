// BOHB's sampler: which trials its model is of.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "search/sampler.hpp"
#include "tests/trials/distributions.hpp"

using namespace hfta::search;
using namespace hfta::trials;
using namespace hfta::trials::testing;
using Kind = DistributionKind;

namespace {

const Space kLine = {{"x", bounded(Kind::kUniform, 0, 1)}};

double x_of(const Params& params) { return std::get<double>(params.at(0).second); }

// How near to `at` the draws are on average, with no random ones.
double distance(const History& history, double at, Goal goal = Goal::kMinimize) {
  const auto bohb = make_bohb(kLine, 3, goal, {.random_percent = 0}, {1, 3, 9});
  double sum = 0;
  for (int i = 0; i < 40; ++i) {
    sum += std::abs(x_of(bohb->ask(static_cast<int>(history.size()) + i, 1, history).at(0)) - at);
  }
  return sum / 40;
}

SeenTrial seen(double x, std::vector<double> values, std::optional<State> ended = State::kPruned) {
  const std::vector<double> last(values.end() - (values.empty() ? 0 : 1), values.end());
  return {{{"x", x}}, std::move(values), last, ended};
}

}  // namespace

TEST_CASE("BOHB draws as random search does until a model can be made") {
  const auto bohb = make_bohb(kLine, 3, Goal::kMinimize, {.random_percent = 0}, {1, 3, 9});
  const auto random = make_random(kLine, 3);
  History history;
  for (int i = 0; i < 3; ++i) {  // two parameters and two more, one fewer than that
    CHECK(bohb->ask(i, 1, history) == random->ask(i, 1, {}));
    history.push_back(seen(0.1 * i, {1}));
  }
  history.push_back(seen(0.4, {1}));
  CHECK(bohb->ask(4, 1, history) != random->ask(4, 1, {}));
  CHECK(bohb->learns());
}

TEST_CASE("BOHB's model is of the largest number of epochs that enough trials have reached") {
  // After one epoch 0.9 looks best, after three 0.1 does.
  History history;
  for (int i = 0; i < 40; ++i) history.push_back(seen(i / 40.0, {std::abs(i / 40.0 - 0.9)}));
  CHECK(distance(history, 0.9) < 0.15);
  for (int i = 0; i < 3; ++i) history.push_back(seen(0.1 + i / 3.0, {0, 0, 0.1 + i / 3.0}));
  CHECK(distance(history, 0.9) < 0.2);  // three are too few
  for (int i = 0; i < 30; ++i) history.push_back(seen(i / 30.0, {0, 0, std::abs(i / 30.0 - 0.1)}));
  CHECK(distance(history, 0.1) < 0.15);
  CHECK(distance(history, 0.1, Goal::kMaximize) > 0.4);
}

TEST_CASE("BOHB keeps away from what failed, and from what diverged") {
  History history;
  for (int i = 0; i < 40; ++i) {
    const double x = i / 40.0;
    if (x < 0.5) history.push_back(seen(x, {}, State::kFail));
    if (x >= 0.5) history.push_back(seen(x, {std::abs(x - 0.8)}));
  }
  CHECK(distance(history, 0.8) < 0.15);
  for (SeenTrial& trial : history) {
    if (trial.curve.empty()) trial.curve = {std::nan("")};
  }
  CHECK(distance(history, 0.8) < 0.15);
}

TEST_CASE("a third of BOHB's draws are random") {
  History history;
  for (int i = 0; i < 40; ++i) history.push_back(seen(i / 40.0, {std::abs(i / 40.0 - 0.9)}));
  const auto bohb = make_bohb(kLine, 3, Goal::kMinimize, {}, {1}), random = make_random(kLine, 3);
  int same = 0;
  for (int i = 0; i < 300; ++i) same += bohb->ask(i, 1, history) == random->ask(i, 1, {}) ? 1 : 0;
  CHECK(same > 70);
  CHECK(same < 130);
}
