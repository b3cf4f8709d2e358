#include "trials/repetition.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "base/random.hpp"

using namespace hfta::trials;

namespace {

Trial trial(int number, State state, std::optional<double> value) {
  Trial made;
  made.number = number;
  made.state = state;
  if (value) made.values = {*value};
  return made;
}

std::vector<const Trial*> pointers(const std::vector<Trial>& trials) {
  std::vector<const Trial*> all;
  for (const Trial& one : trials) all.push_back(&one);
  return all;
}

}  // namespace

TEST_CASE("draws are dealt to configurations in blocks, seeds first") {
  const Repetitions repetitions{2, 3, Rank::kMean};
  CHECK(repetitions.count() == 6);
  CHECK(repetitions.configuration_of(13) == 2);
  CHECK(repetitions.first_of(13) == 12);
  CHECK(repetitions.rounded_up(13) == 18);
  CHECK(repetitions.rounded_up(12) == 12);
  CHECK(repetitions.configurations_in(13) == 3);
  CHECK(repetitions.configurations_in(12) == 2);
  CHECK(repetitions.configurations_in(0) == 0);
  const Params params = repetitions.params_of({{"lr", 0.1}}, 4);
  CHECK(params == Params{{"lr", 0.1}, {"repeat", std::int64_t{1}}, {"fold", std::int64_t{1}}});
  CHECK(repetitions.configuration_of(params) == Params{{"lr", 0.1}});
  const Space axes = repetitions.axes();
  REQUIRE(axes.size() == 2);
  CHECK(axes[0].name == "repeat");
  CHECK(axes[1].distribution.max == 2);
}

TEST_CASE("a study without repetitions has neither parameter, and may have its own of that name") {
  const Repetitions none;
  CHECK(!none.any());
  CHECK(none.axes().empty());
  const Params own = {{"fold", std::int64_t{3}}};
  CHECK(none.params_of(own, 0) == own);
  CHECK(none.configuration_of(own) == own);
}

TEST_CASE("mean, deviation and interval, against a table of Student's t") {
  const Summary summary = summarize({1, 2, 3, 4, 5});
  CHECK(summary.count == 5);
  CHECK(summary.mean == 3);
  CHECK(summary.median == 3);
  CHECK(summary.deviation == Approx(std::sqrt(2.5)));
  CHECK(summary.high - summary.mean == Approx(2.776445 * std::sqrt(2.5 / 5)).epsilon(1e-6));  // t of 4 degrees, .975
  CHECK(summary.mean - summary.low == Approx(summary.high - summary.mean));
  CHECK(summarize({1, 2}, 0.9).high - 1.5 == Approx(6.313752 * 0.5).epsilon(1e-6));  // of 1 degree, .95
  CHECK(std::isnan(summarize({7}).deviation));
  CHECK(std::isnan(summarize({7}).high));
  CHECK(summarize({2, 2, 2}).low == 2);
  CHECK(summarize({4, 1, 3, 2}).median == 2.5);
  const Summary huge = summarize({1.7e308, 1.5e308, 1.6e308, -1.7e308});
  CHECK(huge.mean == Approx(0.775e308));
  CHECK(huge.median == Approx(1.55e308));
  CHECK(huge.deviation == Approx(1.6520190e308).epsilon(1e-6));
}

// The count of covered means is binomial: five of its standard deviations, which a true interval leaves once in two
// million runs, and these numbers are the same in every run.
TEST_CASE("the interval covers the mean as often as it says") {
  for (const int n : {2, 3, 5, 10, 30}) {
    for (const double confidence : {0.5, 0.95}) {
      constexpr int kIntervals = 20000;
      int covered = 0;
      for (int i = 0; i < kIntervals; ++i) {
        hfta::CountedRandom random(17, hfta::Stream::kSimulation, static_cast<std::uint64_t>(n), i);
        std::vector<double> values;
        for (int k = 0; k < n; ++k) values.push_back(3 + 0.1 * random.normal());
        const Summary summary = summarize(values, confidence);
        covered += summary.low <= 3 && 3 <= summary.high ? 1 : 0;
      }
      INFO(n << " values, confidence " << confidence << ": covered " << covered << " of " << kIntervals);
      const double noise = std::sqrt(confidence * (1 - confidence) * kIntervals);
      CHECK(std::abs(covered - confidence * kIntervals) < 5 * noise);
    }
  }
}

TEST_CASE("a configuration's value") {
  const double nan = std::nan("");
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(value_of({1, 2, 6}, Rank::kMean, Goal::kMinimize) == 3);
  CHECK(value_of({1, 2, 6}, Rank::kMedian, Goal::kMinimize) == 2);
  CHECK(value_of({1, 2, 6}, Rank::kLower, Goal::kMinimize) == Approx(summarize({1, 2, 6}).high));
  CHECK(value_of({1, 2, 6}, Rank::kLower, Goal::kMaximize) == Approx(summarize({1, 2, 6}).low));
  CHECK(std::isnan(value_of({1, nan, 6}, Rank::kMean, Goal::kMinimize)));
  CHECK(std::isnan(value_of({1, -infinity, 6}, Rank::kLower, Goal::kMinimize)));
  CHECK(value_of({1, nan, 6}, Rank::kMedian, Goal::kMinimize) == 6);
  CHECK(value_of({1, -infinity, 6}, Rank::kMedian, Goal::kMinimize) == 6);  // it diverged: bad, though it is small
  CHECK(value_of({1, nan, 6}, Rank::kMedian, Goal::kMaximize) == 1);
  CHECK(std::isnan(value_of({nan, nan, 6}, Rank::kMedian, Goal::kMinimize)));
  CHECK(std::isnan(value_of({1, nan}, Rank::kMedian, Goal::kMinimize)));
  CHECK(std::isnan(value_of({}, Rank::kMean, Goal::kMinimize)));
}

TEST_CASE("the best is the best repetition of the best configuration") {
  const Repetitions repetitions{2, 1, Rank::kMean};
  std::vector<Trial> trials = {trial(0, State::kComplete, 0.1), trial(1, State::kComplete, 0.9),
                               trial(2, State::kComplete, 0.5), trial(3, State::kComplete, 0.3),
                               trial(4, State::kComplete, 0.0), trial(5, State::kFail, std::nullopt),
                               trial(6, State::kComplete, 0.0)};
  CHECK(best_of(pointers(trials), repetitions, Goal::kMinimize)->number == 3);
  CHECK(best_of(pointers(trials), repetitions, Goal::kMaximize)->number == 1);
  CHECK(best_value(pointers(trials), repetitions, Goal::kMinimize) == 0.4);
  CHECK(best_value(pointers(trials), repetitions, Goal::kMaximize) == 0.5);
  const auto all = configurations_of(pointers(trials), repetitions, Goal::kMinimize);
  REQUIRE(all.size() == 4);
  CHECK(all[1].value == 0.4);
  CHECK(std::isnan(all[2].value));
  CHECK(std::isnan(all[3].value));
  // No configuration is whole: the best trial there is.
  trials.erase(trials.begin(), trials.begin() + 4);
  CHECK(best_of(pointers(trials), repetitions, Goal::kMinimize)->number == 4);
  CHECK_FALSE(best_value(pointers(trials), repetitions, Goal::kMinimize));
  CHECK(best_of({}, repetitions, Goal::kMinimize) == nullptr);
}

TEST_CASE("trials in the order of their draws") {
  const std::vector<Trial> trials = {trial(3, State::kComplete, 1), trial(5, State::kComplete, 2)};
  const auto order = in_order(trials, {5, 3});
  REQUIRE(order.size() == 2);
  CHECK(order[0]->number == 5);
  CHECK(in_order(trials, {5, 4, 3}).size() == 1);
}
