// Who is best so far: the ranking of one objective, and the front of several.

#include "engine/driver/goals/standings.hpp"

#include <catch2/catch.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "study_fixture.hpp"

using namespace hfta;
using namespace hfta::engine;
using namespace hfta::engine::testing;
using trials::State;

namespace {

trials::Trial ended(int number, State state, std::vector<double> values) {
  trials::Trial trial;
  trial.number = number;
  trial.state = state;
  trial.values = std::move(values);
  return trial;
}

std::vector<int> order_of(const std::vector<const trials::Trial*>& those) {
  std::vector<int> numbers;
  for (const trials::Trial* trial : those) numbers.push_back(trial->number);
  return numbers;
}

}  // namespace

TEST_CASE("the leader has the best value of those that have not been stopped, ties to the lower draw") {
  const trials::Goal goal = GENERATE(trials::Goal::kMinimize, trials::Goal::kMaximize);
  StudyConfig config = random_config(9);
  config.objectives.front().goal = goal;
  const double sign = goal == trials::Goal::kMinimize ? 1 : -1;
  Standings standings(config);
  CHECK(!standings.leader());
  standings.rank(4, sign * 2);
  standings.rank(2, sign * 2);
  CHECK(standings.leader() == 2);
  standings.rank(5, sign * 1);
  CHECK(standings.leader() == 5);
  standings.rank(5, sign * 3);  // its value is worse now, and the one before is forgotten
  CHECK(standings.leader() == 2);
  standings.end(2, ended(2, State::kPruned, {sign * 2}));
  CHECK(standings.leader() == 4);
  standings.end(4, ended(4, State::kComplete, {sign * 2}));
  CHECK(standings.leader() == 4);
  standings.remove(4);
  standings.remove(8);  // which was never ranked
  CHECK(standings.leader() == 5);
  CHECK(!standings.front());
}

TEST_CASE("of several objectives no trial leads, and COMPLETE ones that none dominates are the front") {
  StudyConfig config = random_config(9);
  config.objectives = {{"a", trials::Goal::kMinimize}, {"b", trials::Goal::kMaximize}};
  Standings standings(config);
  const std::vector<trials::Trial> all = {ended(7, State::kComplete, {1, 1}), ended(3, State::kComplete, {2, 2}),
                                          ended(5, State::kPruned, {0, 9}), ended(6, State::kComplete, {2, 0})};
  for (int draw = 0; draw < 4; ++draw) {
    const trials::Trial& trial = all[static_cast<std::size_t>(draw)];
    standings.rank(draw, *trial.value());
    standings.end(draw, trial);
  }
  CHECK(!standings.leader());
  CHECK(standings.front() == std::vector<int>{3, 7});
  CHECK(order_of(standings.best_trials(all)) == std::vector<int>{7, 3});  // in the order of draws
}

TEST_CASE("a target is compared with the best COMPLETE trial, or with the best whole configuration") {
  StudyConfig config = random_config(9);
  const std::vector<trials::Trial> all = {ended(0, State::kComplete, {0.5}), ended(1, State::kComplete, {0.7}),
                                          ended(2, State::kComplete, {0.9}), ended(3, State::kRunning, {0.9})};
  const Standings standings(config);
  CHECK(!standings.best_value(all));  // there is no target
  config.target = 0.95;
  CHECK(standings.best_value(all) == 0.9);
  CHECK(order_of(standings.best_trials(all)) == std::vector<int>{2});
  config.repetitions = {2, 1, trials::Rank::kMean};
  CHECK(standings.best_value(all) == Approx(0.6));
  CHECK(order_of(standings.best_trials(all)) == std::vector<int>{1});
}
