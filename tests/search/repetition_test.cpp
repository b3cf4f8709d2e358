// Configurations judged as one: against references that go configuration by configuration.
#include "search/repetition.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "driven.hpp"
#include "search/signed_rank.hpp"
#include "search/stopping.hpp"

using namespace hfta::search;
using namespace hfta::search::testing;
using hfta::trials::Goal;
using hfta::trials::Rank;
using hfta::trials::Repetitions;

namespace {

constexpr int kEpochs = 9;

// Configurations differ, their repetitions a little less; one trial in `share` diverges at some epoch.
Curve noisy(const Repetitions& repetitions, int share) {
  return [=](int trial, int epoch) {
    hfta::CountedRandom random(5, hfta::Stream::kSimulation, static_cast<std::uint64_t>(trial));
    if (share > 0 && random.below(static_cast<std::uint64_t>(share)) == 0 &&
        epoch >= static_cast<int>(1 + random.below(kEpochs))) {
      return std::nan("");
    }
    return crossing(repetitions.configuration_of(trial), epoch) + 0.2 * random.normal();
  };
}

std::vector<double> values_of(const Repetitions& repetitions, const Curve& curve, int configuration, int epoch) {
  std::vector<double> values;
  for (int i = 0; i < repetitions.count(); ++i) {
    const int trial = configuration * repetitions.count() + i;
    bool alive = true;
    for (int before = 1; before <= epoch; ++before) alive = alive && std::isfinite(curve(trial, before));
    values.push_back(alive ? curve(trial, epoch) : std::nan(""));
  }
  return values;
}

// What trials come to, from what their configurations come to: a trial that diverges before that has failed.
std::vector<Outcome> of_trials(const std::vector<Outcome>& configurations, const Repetitions& repetitions,
                               const Curve& curve) {
  std::vector<Outcome> outcomes;
  for (std::size_t c = 0; c < configurations.size(); ++c) {
    for (int i = 0; i < repetitions.count(); ++i) {
      const int trial = static_cast<int>(c) * repetitions.count() + i;
      Outcome outcome = configurations[c];
      // In its last epoch a trial is complete whatever becomes of the others.
      if (outcome.state == State::kFail) outcome.state = outcome.epochs == kEpochs ? State::kComplete : State::kPruned;
      for (int epoch = 1; epoch <= configurations[c].epochs; ++epoch) {
        if (std::isfinite(curve(trial, epoch))) continue;
        outcome = {State::kFail, epoch};
        break;
      }
      outcomes.push_back(outcome);
    }
  }
  return outcomes;
}

// A rule's own scheduler, told one configuration after the other, as many slots as there are: what the rule decides
// does not depend on it.
std::vector<Outcome> by_rule(const StoppingOptions& options, const char* rule, const Repetitions& repetitions,
                             const Curve& curve, int count) {
  const auto scheduler = stopping_rule(rule).make(options, Goal::kMinimize, {count});
  return of_trials(drive(
                       *scheduler, count,
                       [&](int configuration, int epoch) {
                         const auto values = values_of(repetitions, curve, configuration, epoch);
                         return hfta::trials::value_of(values, repetitions.rank, Goal::kMinimize);
                       },
                       1, 1),
                   repetitions, curve);
}

std::vector<Outcome> racing_reference(const RacingOptions& options, const Repetitions& repetitions, const Curve& curve,
                                      int count) {
  std::vector<Outcome> outcomes;
  for (int configuration = 0; configuration < count; ++configuration) {
    Outcome outcome;
    while (outcome.state == State::kRunning) {
      const auto values = values_of(repetitions, curve, configuration, ++outcome.epochs);
      const double value = hfta::trials::value_of(values, repetitions.rank, Goal::kMinimize);
      if (!std::isfinite(value)) {
        outcome.state = State::kFail;
      } else if (outcome.epochs == options.max_epochs) {
        outcome.state = State::kComplete;
      } else if (outcome.epochs >= options.min_epochs) {
        int best = -1;
        double best_value = 0;
        for (int other = 0; other < configuration; ++other) {
          const Outcome& known = outcomes[static_cast<std::size_t>(other)];
          const bool judged =
              known.epochs > outcome.epochs || (known.epochs == outcome.epochs && known.state == State::kPruned);
          if (!judged) continue;
          const double others = hfta::trials::value_of(values_of(repetitions, curve, other, outcome.epochs),
                                                       repetitions.rank, Goal::kMinimize);
          if (best >= 0 && !(others < best_value)) continue;
          best = other;
          best_value = others;
        }
        if (best < 0) continue;
        const auto others = values_of(repetitions, curve, best, outcome.epochs);
        std::vector<double> differences;
        for (std::size_t i = 0; i < values.size(); ++i) {
          const double infinity = std::numeric_limits<double>::infinity();
          const double a = std::isnan(values[i]) ? infinity : values[i];
          const double b = std::isnan(others[i]) ? infinity : others[i];
          if (!std::isnan(a - b)) differences.push_back(a - b);
        }
        if (signed_rank_p(differences) <= 1 - options.confidence / 100.0) outcome.state = State::kPruned;
      }
    }
    outcomes.push_back(outcome);
  }
  return of_trials(outcomes, repetitions, curve);
}

}  // namespace

TEST_CASE("a rule judges configurations by the value of their repetitions, at any width") {
  StoppingOptions options;
  options.max_epochs = kEpochs;
  options.min_trials = 2;
  options.eta = 2;
  const int count = 12;
  for (const char* rule : {"none", "median", "asha"}) {
    for (const Rank rank : {Rank::kMean, Rank::kLower, Rank::kMedian}) {
      for (const int share : {0, 6}) {
        const Repetitions repetitions{3, 1, rank};
        const Curve curve = noisy(repetitions, share);
        const std::vector<Outcome> wanted = by_rule(options, rule, repetitions, curve, count);
        for (const int width : {1, 2, 7, 40}) {
          INFO(rule << " rank " << name_of(rank) << " share " << share << " width " << width);
          const auto scheduler =
              make_repeated(stopping_rule(rule).make(options, Goal::kMinimize, {count}), repetitions, Goal::kMinimize);
          CHECK(drive(*scheduler, 3 * count, curve, width, 3U + static_cast<unsigned>(width)) == wanted);
        }
      }
    }
  }
}

TEST_CASE("racing stops what is worse beyond doubt, in the order of draws, at any width") {
  const int count = 14;
  int stopped = 0;
  for (const int confidence : {80, 95}) {
    for (const int share : {0, 12}) {
      const Repetitions repetitions{3, 2, share > 0 ? Rank::kMedian : Rank::kMean};
      const RacingOptions options{kEpochs, 2, confidence};
      const Curve curve = noisy(repetitions, share);
      const std::vector<Outcome> wanted = racing_reference(options, repetitions, curve, count);
      for (const int width : {1, 5, 17, 100}) {
        INFO("confidence " << confidence << " share " << share << " width " << width);
        const auto scheduler = make_racing(options, repetitions, Goal::kMinimize);
        CHECK(drive(*scheduler, 6 * count, curve, width, 3U + static_cast<unsigned>(width)) == wanted);
      }
      for (const Outcome& outcome : wanted) stopped += outcome.state == State::kPruned ? 1 : 0;
    }
  }
  CHECK(stopped > 60);  // the cases are not all of one kind
  CHECK(stopped < 4 * 6 * count);
}

TEST_CASE("racing wants as many repetitions as can show a difference") {
  CHECK(fewest_for_racing(95) == 5);
  CHECK(fewest_for_racing(99) == 7);
  CHECK(fewest_for_racing(50) == 1);
  CHECK_THROWS_WITH(make_racing({9, 1, 95}, {4, 1}, Goal::kMinimize),
                    Catch::Contains("found 4 repetitions") && Catch::Contains("wanted at least 5"));
  CHECK_THROWS_AS(make_racing({9, 1, 100}, {40, 1}, Goal::kMinimize), hfta::Error);
}

TEST_CASE("reports of repetitions may come in any order") {
  StoppingOptions options;
  options.max_epochs = kEpochs;
  options.min_trials = 2;
  const Repetitions repetitions{3, 1, Rank::kMean};
  const Curve curve = noisy(repetitions, 6);
  std::vector<Report> log;
  const auto make = [&] {
    return make_repeated(stopping_rule("median").make(options, Goal::kMinimize, {}), repetitions, Goal::kMinimize);
  };
  const std::vector<Outcome> wanted = drive(*make(), 36, curve, 5, 1, &log);
  std::reverse(log.begin(), log.end());  // the latest first, long before the verdicts that they follow from
  const auto scheduler = make();
  for (const Report& report : log) (void)scheduler->report(report.trial, report.epoch, report.value);
  (void)scheduler->take_verdicts();
  for (const Report& report : log) {  // told again, all is known
    const Outcome& outcome = wanted[static_cast<std::size_t>(report.trial)];
    const Decision decision = scheduler->report(report.trial, report.epoch, report.value);
    const bool last = report.epoch == outcome.epochs;
    INFO("trial " << report.trial << " epoch " << report.epoch);
    if (!last) CHECK((decision == Decision::kContinue || outcome.state != State::kComplete));
    if (last) CHECK(decision == (outcome.state == State::kComplete ? Decision::kComplete : Decision::kStop));
  }
}

TEST_CASE("a repetition that fails without a value takes its configuration with it, in the epoch that follows") {
  const Repetitions repetitions{2, 1, Rank::kMean};
  const auto scheduler = make_repeated(make_full(4), repetitions, Goal::kMinimize);
  CHECK(scheduler->report(0, 1, 1.0) == Decision::kPause);
  CHECK(scheduler->report(1, 1, 2.0) == Decision::kContinue);
  CHECK(scheduler->take_verdicts().at(0).decision == Decision::kContinue);
  scheduler->fail(0);
  CHECK(scheduler->take_verdicts().empty());
  CHECK(scheduler->report(1, 2, 2.0) == Decision::kStop);
  CHECK_THROWS_AS(scheduler->report(1, 5, 2.0), hfta::Error);
  CHECK_THROWS_AS(scheduler->report(1, 1, 3.0), hfta::Error);
}

namespace {

// Says of its configurations what it is told to, whenever it is asked.
class Told final : public Scheduler {
 public:
  explicit Told(std::vector<Verdict>& verdicts) : verdicts_(verdicts) {}
  [[nodiscard]] std::optional<int> capacity() const override { return std::nullopt; }
  [[nodiscard]] int target(int) const override { return 2; }
  [[nodiscard]] int max_epochs() const override { return 2; }
  [[nodiscard]] Decision report(int, int epoch, double) override {
    return epoch == 2 ? Decision::kComplete : Decision::kPause;
  }
  void fail(int) override {}
  [[nodiscard]] std::vector<Verdict> take_verdicts() override { return std::exchange(verdicts_, {}); }
  [[nodiscard]] std::int64_t planned_epochs(int, int trials) const override { return 2 * trials; }

 private:
  std::vector<Verdict>& verdicts_;
};

}  // namespace

// A driver reports a round and asks for verdicts then: one of a repetition that is complete would bring it back.
TEST_CASE("a verdict that is taken back does not reach a repetition that has trained on") {
  std::vector<Verdict> verdicts;
  const auto scheduler =
      make_repeated(std::make_unique<Told>(verdicts), Repetitions{2, 1, Rank::kMean}, Goal::kMinimize);
  CHECK(scheduler->report(0, 1, 1.0) == Decision::kPause);
  CHECK(scheduler->report(1, 1, 2.0) == Decision::kPause);
  verdicts = {{0, Decision::kContinue}};
  REQUIRE(scheduler->take_verdicts().size() == 2);
  verdicts = {{0, Decision::kPause}};
  CHECK(scheduler->report(2, 1, 1.0) == Decision::kPause);  // of another configuration, in the same round
  CHECK(scheduler->report(0, 2, 1.0) == Decision::kComplete);
  const std::vector<Verdict> taken = scheduler->take_verdicts();
  REQUIRE(taken.size() == 1);
  CHECK((taken.front().trial == 1 && taken.front().decision == Decision::kPause));
}

TEST_CASE("trials are counted, not configurations") {
  const Repetitions repetitions{3, 2, Rank::kMean};
  const auto hyperband = make_repeated(make_hyperband({1, 9, 3}, Goal::kMinimize, {10}), repetitions, Goal::kMinimize);
  const auto single = make_hyperband({1, 9, 3}, Goal::kMinimize, {10});
  CHECK(hyperband->capacity() == 6 * *single->capacity());
  CHECK(hyperband->planned_epochs(0, 60) == 6 * single->planned_epochs(0, 10));
  CHECK(hyperband->max_epochs() == 9);
}

TEST_CASE("a sampler learns from configurations") {
  const Repetitions repetitions{2, 1, Rank::kMean};
  const auto params = [&](double lr, int index) { return repetitions.params_of({{"lr", lr}}, index); };
  const History trials = {
      {params(1, 0), {1, 3}, {3.0}, State::kComplete}, {params(1, 1), {2, 5}, {5.0}, State::kComplete},
      {params(2, 0), {1, 3}, {3.0}, State::kComplete}, {params(2, 1), {2}, {2.0}, std::nullopt},
      {params(3, 0), {1}, {1.0}, State::kPruned},      {params(3, 1), {2}, {2.0}, State::kPruned},
      {params(4, 0), {1}, {}, State::kFail},           {params(4, 1), {2}, {2.0}, State::kPruned},
      {params(5, 0), {1}, {1.0}, std::nullopt}};
  const History seen = by_configuration(trials, repetitions, Goal::kMinimize);
  REQUIRE(seen.size() == 5);
  CHECK(seen[0].params == hfta::trials::Params{{"lr", 1.0}});
  CHECK(seen[0].curve == std::vector<double>{1.5, 4});
  CHECK(seen[0].value() == 4.0);
  CHECK(seen[0].ended == State::kComplete);
  CHECK(seen[1].curve == std::vector<double>{1.5});
  CHECK(!seen[1].ended);
  CHECK(seen[2].ended == State::kPruned);
  CHECK(seen[3].ended == State::kFail);
  CHECK(seen[3].values.empty());
  CHECK(seen[4].curve.empty());
  CHECK(by_configuration(trials, {}, Goal::kMinimize).size() == trials.size());
}
