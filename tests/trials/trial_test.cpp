#include "trials/trial.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "base/error.hpp"

using namespace hfta::trials;

namespace {
const double kNan = std::nan(""), kInf = std::numeric_limits<double>::infinity();

Trial trial(int number, State state, std::optional<double> value) {
  Trial t;
  t.number = number;
  t.state = state;
  if (value) t.values = {*value};
  return t;
}
}  // namespace

TEST_CASE("States go by Optuna's names") {
  const std::vector<std::pair<State, std::string>> cases = {{State::kRunning, "RUNNING"},
                                                            {State::kComplete, "COMPLETE"},
                                                            {State::kPruned, "PRUNED"},
                                                            {State::kFail, "FAIL"},
                                                            {State::kWaiting, "WAITING"}};
  for (const auto& [state, name] : cases) {
    CHECK(name_of(state) == name);
    CHECK(state_from(name) == state);
  }
  for (const char* other : {"", "running", "PAUSED", "FAIL\x1b"}) {
    try {
      (void)state_from(other);
      FAIL("accepted " << other);
    } catch (const hfta::Error& error) {
      CHECK(error.kind() == hfta::ErrorKind::kStorage);
      CHECK(std::string(error.what()).find('\x1b') == std::string::npos);
    }
  }
}

TEST_CASE("Values read as people write them") {
  CHECK(to_text(std::monostate{}) == "null");
  CHECK(to_text(true) == "true");
  CHECK(to_text(false) == "false");
  CHECK(to_text(std::int64_t{-9007199254740993}) == "-9007199254740993");
  CHECK(to_text(0.1) == "0.1");
  CHECK(to_text(std::string("adam w")) == "adam w");
}

TEST_CASE("better orders numbers by the goal and puts NaN last") {
  struct Case {
    double a, b;
    bool minimize, maximize;
  };
  const std::vector<Case> cases = {
      {1, 2, true, false},      {2, 1, false, true},        {1, 1, false, false},    {1, kNan, true, true},
      {kNan, 1, false, false},  {kNan, kNan, false, false}, {-kInf, 0, true, false}, {kInf, 0, false, true},
      {kInf, kNan, true, true}, {0.0, -0.0, false, false},
  };
  for (const Case& c : cases) {
    INFO(c.a << " against " << c.b);
    CHECK(better(c.a, c.b, Goal::kMinimize) == c.minimize);
    CHECK(better(c.a, c.b, Goal::kMaximize) == c.maximize);
  }
}

TEST_CASE("best_of takes the best COMPLETE trial, ties to the lower number, as Optuna does") {
  std::vector<Trial> trials = {
      trial(7, State::kComplete, 0.5), trial(1, State::kPruned, 0.1),  trial(2, State::kComplete, kNan),
      trial(3, State::kComplete, 0.3), trial(4, State::kRunning, 0.2), trial(5, State::kComplete, std::nullopt),
      trial(6, State::kComplete, 0.5), trial(8, State::kFail, 0.0),    trial(9, State::kComplete, 0.9),
  };
  trials[3].feasible = false;
  REQUIRE(best_of(trials, Goal::kMinimize) != nullptr);
  CHECK(best_of(trials, Goal::kMinimize)->number == 6);
  CHECK(best_of(trials, Goal::kMaximize)->number == 9);
  CHECK(best_of({}, Goal::kMinimize) == nullptr);
  trials.push_back(trial(10, State::kComplete, kInf));
  CHECK(best_of(trials, Goal::kMinimize)->number == 6);
  CHECK(best_of(trials, Goal::kMaximize)->number == 10);
  CHECK(best_of({trial(0, State::kPruned, 1), trial(1, State::kComplete, kNan)}, Goal::kMaximize) == nullptr);
}
