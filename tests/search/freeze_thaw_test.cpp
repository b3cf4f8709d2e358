// Freeze-thaw: whom its scheduler lets go on, and what its sampler draws.

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "driven.hpp"
#include "freeze_thaw/setting.hpp"
#include "search/sampler.hpp"

using namespace hfta;
using namespace hfta::search;
using namespace hfta::search::freeze_thaw;
using namespace hfta::search::freeze_thaw::testing;
using namespace hfta::search::testing;
using trials::Goal;
using trials::testing::word;
using Kind = trials::DistributionKind;

namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();

std::unique_ptr<Scheduler> scheduler_of(int cap, int slots, const Space& space = kPlane,
                                        const std::set<std::string>& splitting = kNone) {
  return make_freeze_thaw_scheduler(space, splitting, 5, Goal::kMinimize, options_of(slots), {}, {cap});
}

}  // namespace

TEST_CASE("a scheduler picks for as many slots as there are when it is asked") {
  int slots = 2;
  FreezeThawOptions options = options_of(0);
  const auto scheduler =
      make_freeze_thaw_scheduler(kPlane, kNone, 5, Goal::kMinimize, options, {}, {8}, [&] { return slots; });
  for (int trial = 0; trial < 8; ++trial) {
    scheduler->enter(trial, at(trial / 8.0, 0.5));
    (void)scheduler->report(trial, 1, 1 + std::sin(trial));
  }
  std::set<int> go_on;  // all have begun, so that nobody new is picked
  const auto take = [&] {
    for (const Verdict& verdict : scheduler->take_verdicts()) {
      verdict.decision == Decision::kContinue ? (void)go_on.insert(verdict.trial) : (void)go_on.erase(verdict.trial);
    }
  };
  take();
  CHECK(go_on.size() == 2);
  slots = 5;
  const int told = *go_on.begin();
  go_on.erase(told);
  (void)scheduler->report(told, 2, 0.5);
  take();
  CHECK(go_on.size() == 5);
}

namespace {

// Slots that train in step. `watch` is called after each round's verdicts with who may train.
using Watch = std::function<void(const std::vector<Report>& told, const std::set<int>& may_train)>;

std::vector<Outcome> drive_in_step(Scheduler& scheduler, const Space& space, int cap, int width,
                                   double (*curve)(int trial, int epoch), const Watch& watch) {
  const auto sobol = make_sobol(space, 2);
  std::vector<Outcome> outcomes(static_cast<std::size_t>(cap));
  std::vector<Report> told;
  std::set<int> ready;
  int drawn = 0;
  for (int round = 0;; ++round) {
    REQUIRE(round < 10'000);
    std::vector<int> slots;
    for (const int trial : ready) {
      if (static_cast<int>(slots.size()) < width) slots.push_back(trial);
    }
    for (; static_cast<int>(slots.size()) < width && drawn < cap; ++drawn) {
      scheduler.enter(drawn, sobol->ask(drawn, 1, {}).at(0));
      slots.push_back(drawn);
    }
    if (slots.empty()) return outcomes;
    for (const int trial : slots) {
      ready.erase(trial);
      Outcome& outcome = outcomes[static_cast<std::size_t>(trial)];
      REQUIRE(outcome.state == State::kRunning);
      REQUIRE(outcome.epochs < scheduler.target(trial));
      told.push_back({trial, ++outcome.epochs, curve(trial, outcome.epochs)});
      const Decision decision = scheduler.report(trial, outcome.epochs, told.back().value);
      if (decision == Decision::kStop) outcome.state = State::kFail;
      if (decision == Decision::kComplete) outcome.state = State::kComplete;
    }
    for (const Verdict& verdict : scheduler.take_verdicts()) {
      REQUIRE(outcomes[static_cast<std::size_t>(verdict.trial)].state == State::kRunning);
      if (verdict.decision == Decision::kContinue) {
        REQUIRE(ready.insert(verdict.trial).second);
      } else {
        REQUIRE(verdict.decision == Decision::kPause);
        REQUIRE(ready.erase(verdict.trial) == 1);
      }
    }
    watch(told, ready);
  }
}

double some_diverge(int trial, int epoch) { return trial % 7 == 3 && epoch >= 3 ? kNan : crossing(trial, epoch); }

}  // namespace

TEST_CASE("with a run_cap every trial that does not fail trains to its end, in slots of any number") {
  for (const int width : {1, 3, 5}) {
    INFO(width);
    const auto scheduler = scheduler_of(14, 3);
    const auto outcomes = drive_in_step(*scheduler, kPlane, 14, width, some_diverge, [](const auto&, const auto&) {});
    for (int trial = 0; trial < 14; ++trial) {
      const Outcome wanted = trial % 7 == 3 ? Outcome{State::kFail, 3} : Outcome{State::kComplete, 9};
      CHECK(outcomes[static_cast<std::size_t>(trial)] == wanted);
    }
  }
}

// Whoever reads a store again tells of its epochs in another order, and takes verdicts in between.
TEST_CASE("who goes on follows from the values that are known, in whatever order they are told") {
  const auto sobol = make_sobol(kSplit, 2);
  for (const bool splits : {false, true}) {
    const std::set<std::string> splitting = splits ? std::set<std::string>{"hidden"} : kNone;
    const auto scheduler = scheduler_of(12, 4, kSplit, splitting);
    int rounds = 0;
    drive_in_step(*scheduler, kSplit, 12, 3, some_diverge, [&](std::vector<Report> told, const std::set<int>& ready) {
      if (++rounds % 3 != 0) return;
      const auto again = scheduler_of(12, 4, kSplit, splitting);
      for (int trial = 0; trial < 12; ++trial) again->enter(trial, sobol->ask(trial, 1, {}).at(0));
      std::stable_sort(told.begin(), told.end(), [](const Report& a, const Report& b) { return a.epoch < b.epoch; });
      std::set<int> goes_on;
      for (std::size_t i = 0; i < told.size(); ++i) {
        (void)again->report(told[i].trial, told[i].epoch, told[i].value);
        goes_on.erase(told[i].trial);
        if (i + 1 < told.size() && told[i + 1].epoch == told[i].epoch) continue;
        for (const Verdict& verdict : again->take_verdicts()) {
          if (verdict.decision == Decision::kContinue) goes_on.insert(verdict.trial);
          if (verdict.decision == Decision::kPause) goes_on.erase(verdict.trial);
        }
      }
      CHECK(goes_on == ready);
    });
    CHECK(rounds > 12);
  }
}

TEST_CASE("the scheduler refuses what cannot be, and plans all epochs") {
  const auto scheduler = scheduler_of(5, 2);
  CHECK_THROWS_AS((void)scheduler->report(5, 1, 0.5), Error);
  CHECK_THROWS_AS((void)scheduler->report(0, 10, 0.5), Error);
  CHECK_THROWS_AS((void)scheduler->report(0, 0, 0.5), Error);
  CHECK(scheduler->planned_epochs(0, 5) == 45);
  CHECK(scheduler->planned_epochs(3, 5) == 18);
  CHECK(scheduler->capacity() == 5);
  CHECK(scheduler->target(0) == 1);
  (void)scheduler->report(0, 1, 0.5);
  CHECK(scheduler->target(0) == 2);
  CHECK(scheduler->take_verdicts().empty());  // fewer than startup_trials: new ones begin
}

namespace {

History history_of(const Space& space, int count) {
  History history;
  for (Params& params : make_random(space, 4)->ask(0, count, {})) {
    const int trial = static_cast<int>(history.size());
    SeenTrial seen{std::move(params)};
    for (int epoch = 1; epoch <= 1 + trial % 9; ++epoch) seen.curve.push_back(crossing(trial, epoch));
    if (trial % 5 == 4) seen.curve.back() = kNan;
    if (trial % 5 == 4) seen.ended = State::kFail;
    if (trial % 9 == 8) seen.ended = State::kComplete;
    history.push_back(std::move(seen));
  }
  return history;
}

}  // namespace

TEST_CASE("k draws of freeze-thaw at once are k draws one by one") {
  for (const Space& space : {kPlane, kSplit}) {
    for (const int count : {0, 2, 20}) {
      const auto make = [&] { return make_freeze_thaw(space, {"hidden"}, 5, Goal::kMinimize, options_of(4)); };
      History history = history_of(space, count);
      const std::vector<Params> at_once = make()->ask(count, 5, history);
      for (int i = 0; i < 5; ++i) {
        CHECK(make()->ask(count + i, 1, history).at(0) == at_once[static_cast<std::size_t>(i)]);
        history.push_back({at_once[static_cast<std::size_t>(i)]});
      }
    }
  }
}

TEST_CASE("a trial with a value and no curve has not failed") {
  const History known = history_of(kPlane, 20);
  const auto draws = [&](State state, const std::vector<double>& values) {
    History history = known;
    for (int i = 0; i < 10; ++i) {
      history.push_back({{{"x", 0.1 * i}, {"y", 0.5}}, {}, values, state});
      history.back().params.front().first = kPlane[0].name;
      history.back().params.back().first = kPlane[1].name;
    }
    return make_freeze_thaw(kPlane, kNone, 5, Goal::kMinimize, options_of(4))->ask(20, 6, history);
  };
  const std::vector<Params> without =
      make_freeze_thaw(kPlane, kNone, 5, Goal::kMinimize, options_of(4))->ask(20, 6, known);
  CHECK(draws(State::kComplete, {0.3}) == without);
  CHECK(draws(State::kPruned, {0.3}) == without);
  CHECK(draws(State::kFail, {}) != without);
  CHECK(draws(State::kPruned, {}) != without);
}

TEST_CASE("freeze-thaw draws every configuration of a finite space once") {
  const Space small = {{"a", bounded(Kind::kIntUniform, 1, 4)}, {"w", categorical({word("x"), word("y"), word("z")})}};
  const auto sampler = make_freeze_thaw(small, kNone, 5, Goal::kMinimize, options_of(3));
  History history;
  std::set<std::string> seen;
  for (int draw = 0; draw < 12; ++draw) {
    history.push_back({sampler->ask(draw, 1, history).at(0), {crossing(draw, 1)}, {crossing(draw, 1)}, std::nullopt});
    std::string text;
    for (const auto& [name, value] : history.back().params) text += trials::to_text(value) + " ";
    CHECK(seen.insert(text).second);
  }
  CHECK(sampler->ask(12, 2, history).size() == 2);  // all were tried: further ones repeat them
}
