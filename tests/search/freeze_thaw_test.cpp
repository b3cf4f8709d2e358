// Freeze-thaw: the process over learning curves against hand-worked and dense values, what is picked, and whom its
// scheduler lets go on.

#include <Eigen/LU>
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <vector>

#include "base/error.hpp"
#include "driven.hpp"
#include "search/freeze_thaw/planner.hpp"
#include "search/sampler.hpp"
#include "tests/trials/distributions.hpp"

using namespace hfta;
using namespace hfta::search;
using namespace hfta::search::freeze_thaw;
using namespace hfta::search::testing;
using SeenCurve = hfta::search::freeze_thaw::Curve;
using namespace hfta::trials::testing;
using trials::Goal;
using trials::Params;
using trials::Space;
using Kind = DistributionKind;
using Eigen::Index;

namespace {

const Space kPlane = {{"x", bounded(Kind::kUniform, 0, 1)}, {"y", bounded(Kind::kUniform, 0, 1)}};
const Space kSplit = {{"x", bounded(Kind::kUniform, 0, 1)},
                      {"hidden", categorical({integer(8), integer(16), integer(32)})}};
const std::set<std::string> kNone;
const double kNan = std::numeric_limits<double>::quiet_NaN();

bool anything(const Vector&) { return true; }

double matern(double r) { return (1 + std::sqrt(5.0) * r + 5 * r * r / 3) * std::exp(-std::sqrt(5.0) * r); }

CurveHyperparameters hyper() {
  return {Vector::Constant(2, std::log(0.5)),
          std::log(0.7),
          {std::log(1.0), std::log(0.4), std::log(0.3), std::log(0.2), std::log(0.1)},
          std::log(0.05)};
}

// `count` points of some trials, a few epochs each.
CurvePoints some_points(Index count, std::uint64_t seed) {
  CountedRandom random(seed, Stream::kSimulation, 0);
  CurvePoints points{Matrix(count, 2), Vector(count), {}};
  std::map<int, std::pair<double, double>> places;
  for (Index i = 0; i < count; ++i) {
    const int trial = static_cast<int>(i) / 3;
    if (!places.contains(trial)) places[trial] = {random.uniform(), random.uniform()};
    points.x.row(i) << places[trial].first, places[trial].second;
    points.epochs[i] = static_cast<double>(1 + i % 3 * 4);
    points.trial.push_back(trial);
  }
  return points;
}

Vector some_values(const CurvePoints& points) {
  Vector y = (4 * points.x.col(0)).array().sin() + points.x.col(1).array() - points.epochs.array().log() / 2;
  y.array() -= y.mean();
  return y / std::sqrt(y.squaredNorm() / static_cast<double>(y.size()));
}

CurvePoints joined(const CurvePoints& a, const CurvePoints& b) {
  CurvePoints all{Matrix(a.size() + b.size(), 2), Vector(a.size() + b.size()), a.trial};
  all.x << a.x, b.x;
  all.epochs << a.epochs, b.epochs;
  all.trial.insert(all.trial.end(), b.trial.begin(), b.trial.end());
  return all;
}

FreezeThawOptions options_of(int slots, int max_epochs = 9) {
  return {.max_epochs = max_epochs, .startup_trials = 3, .slots = slots, .eta = 3, .random_percent = 0};
}

Params at(double x, double y) { return {{"x", x}, {"y", y}}; }

std::unique_ptr<Scheduler> scheduler_of(int cap, int slots, const Space& space = kPlane,
                                        const std::set<std::string>& splitting = kNone) {
  return make_freeze_thaw_scheduler(space, splitting, 5, Goal::kMinimize, options_of(slots), {}, {cap});
}

}  // namespace

TEST_CASE("covariances of two values of one trial, and of two trials, by hand") {
  const Inputs inputs(kPlane);
  CurvePoints points{Matrix(3, 2), Vector(3), {0, 0, 1}};
  points.x << 0.2, 0.5, 0.2, 0.5, 0.5, 0.9;  // the third is one length from the others
  points.epochs << 1, 4, 4;
  const Matrix k = CurveKernel(inputs, hyper()).between(points, points);
  const double m = matern(1), t = matern(std::log(4.0) / 0.7);
  CHECK(k(0, 0) == Approx(1 + 0.4 + 0.3 + 0.2 + 0.1));
  CHECK(k(0, 1) == Approx(1 + 0.4 * t + 0.3 * t + 0.2 * t + 0.1));
  CHECK(k(1, 2) == Approx(1 * m + 0.4 * m + 0.2));
  CHECK(k(0, 2) == Approx(1 * m + 0.4 * m * t + 0.2 * t));
  CHECK(CurveKernel(inputs, hyper()).variance() == Approx(2.0));
  points.trial = {kNoTrial, kNoTrial, 1};  // two trials that have not begun are two
  CHECK(CurveKernel(inputs, hyper()).between(points, points)(0, 1) == Approx(1 + 0.4 * t + 0.2 * t));
}

TEST_CASE("the density of curves' hyperparameters has the gradient that differences show") {
  const Inputs inputs(kPlane);
  const CurvePoints points = some_points(18, 3);
  const Vector y = some_values(points);
  Vector at_point(9), gradient, unused;
  at_point << -1.1, -0.6, 0.2, 0.1, -0.8, -2.5, -0.4, -4, -4.5;
  (void)negative_log_posterior(inputs, points, y, at_point, gradient);
  for (Index i = 0; i < at_point.size(); ++i) {
    Vector above = at_point, below = at_point;
    above[i] += 1e-5;
    below[i] -= 1e-5;
    const double slope = (negative_log_posterior(inputs, points, y, above, unused) -
                          negative_log_posterior(inputs, points, y, below, unused)) /
                         2e-5;
    INFO(i);
    CHECK(gradient[i] == Approx(slope).epsilon(1e-5).margin(1e-6));
  }
}

TEST_CASE("a forecast is the dense posterior, also where values are believed") {
  const Inputs inputs(kPlane);
  const CurvePoints known = some_points(12, 7);
  const Vector y = some_values(known);
  CurvePoints wanted = some_points(6, 8);
  for (int& trial : wanted.trial) trial += 2;  // of trials that are known, and of others
  wanted.trial[5] = kNoTrial;                  // what chance gives a new one does not count
  const CurveKernel kernel(inputs, hyper());
  const auto dense = [&](const CurvePoints& seen, const Vector& values) {
    Matrix covariance = kernel.between(seen, seen);
    covariance.diagonal().array() += 0.05 + 1e-6;
    const Matrix gain = covariance.inverse() * kernel.between(seen, wanted);
    const Matrix left = kernel.between(wanted, wanted) - kernel.between(seen, wanted).transpose() * gain;
    return std::pair<Vector, Vector>(gain.transpose() * values, left.diagonal());
  };
  CurveForecast forecast(inputs, hyper(), known, y, wanted);
  const auto [means, variances] = dense(known, y);
  CHECK((forecast.means() - means).norm() == Approx(0).margin(1e-9));
  CHECK((forecast.variances() - variances).norm() == Approx(0).margin(1e-9));
  Matrix covariance = kernel.between(known, known);
  const Matrix clean = covariance;
  covariance.diagonal().array() += 0.05 + 1e-6;
  CHECK(forecast.least_known() == Approx((clean * covariance.inverse() * y).minCoeff()).margin(1e-9));
  forecast.believe(4);
  const CurvePoints one{wanted.x.row(4), wanted.epochs.segment(4, 1), {wanted.trial[4]}};
  Vector more(y.size() + 1);
  more << y, means[4];
  const auto [same_means, narrower] = dense(joined(known, one), more);
  CHECK((forecast.means() - same_means).norm() == Approx(0).margin(1e-9));
  CHECK((forecast.variances() - narrower).norm() == Approx(0).margin(1e-9));
  const double before = forecast.variances()[5];
  forecast.believe(5);
  CHECK(forecast.variances()[5] < before);
  CHECK(forecast.variances()[5] > 0);  // another trial of this configuration may come to something else
}

TEST_CASE("stages of training have eta times the epochs of the one before") {
  CHECK(stage_of(0, 3) == 0);
  CHECK(stage_of(1, 3) == 1);
  CHECK(stage_of(2, 3) == 1);
  CHECK(stage_of(3, 3) == 2);
  CHECK(stage_of(8, 3) == 2);
  CHECK(stage_of(9, 3) == 3);
  CHECK(stage_of(26, 3) == 3);
  CHECK(stage_of(4, 2) == 3);
}

TEST_CASE("of a curve the model sees some epochs, its best and its last, and never too many") {
  std::vector<double> values(20);
  for (int i = 0; i < 20; ++i) values[static_cast<std::size_t>(i)] = std::abs(i - 10) + 1;
  std::vector<SeenCurve> curves = {curve_of(0, Vector::Zero(2), values, false, Goal::kMinimize)};
  const CurveObservations few = observe(curves, 100);
  const std::vector<double> wanted = {1, 2, 3, 4, 6, 9, 11, 13, 19, 20};
  REQUIRE(few.points.size() == 10);
  for (Index i = 0; i < 10; ++i) CHECK(few.points.epochs[i] == wanted[static_cast<std::size_t>(i)]);
  for (int trial = 1; trial < 300; ++trial) {
    const auto epochs = static_cast<std::ptrdiff_t>(1 + trial % 20);
    curves.push_back(
        curve_of(trial, Vector::Constant(2, trial), {values.begin(), values.begin() + epochs}, false, Goal::kMinimize));
  }
  for (const std::size_t most : {2, 20, 160, 400, 700, 5000}) {
    const CurveObservations seen = observe(curves, most);
    CHECK(static_cast<std::size_t>(seen.points.size()) <= most);
    CHECK(seen.points.size() == seen.y.size());
  }
  const SeenCurve failed = curve_of(0, Vector::Zero(2), {3, 2, kNan, 1}, false, Goal::kMaximize);
  CHECK(failed.values == std::vector<double>{-3, -2});
  CHECK(failed.failed);
  CHECK(failed.ended);
}

namespace {

// Candidates whose values after 9 epochs nobody knows, all equally: the first `waiting` have trained 3, 4, ... epochs,
// and trial 1 has shown the least value.
Dealer dealer_of(int waiting, int in_sequence, int others, int random_percent) {
  const Inputs inputs(kPlane);
  Candidates all;
  for (int i = 0; i < waiting + in_sequence + others; ++i) {
    all.add({i < waiting ? i : kNoTrial, Vector::Constant(2, 100.0 * (i + 1))}, i < waiting ? 3 + i : 0,
            i == 1 ? 0.0 : 1.0);
  }
  all.waiting = static_cast<std::size_t>(waiting);
  all.sequence = static_cast<std::size_t>(in_sequence);
  const auto count = static_cast<Index>(all.size());
  CurvePoints ends{Matrix(count, 2), Vector::Constant(count, 9), {}};
  for (Index i = 0; i < count; ++i) {
    ends.x.row(i) = all.picks[static_cast<std::size_t>(i)].x.transpose();
    ends.trial.push_back(all.picks[static_cast<std::size_t>(i)].trial);
  }
  const CurvePoints known{Matrix::Zero(1, 2), Vector::Constant(1, 1e6), {1000}};
  FreezeThawOptions options = options_of(1);
  options.random_percent = random_percent;
  return {std::move(all), CurveForecast(inputs, hyper(), known, Vector::Zero(1), std::move(ends)), Vector::Zero(count),
          options, CountedRandom(1, Stream::kFreezeThaw, 0)};
}

std::vector<int> trials_of(const std::vector<Pick>& picks) {
  std::vector<int> trials;
  for (const Pick& pick : picks) trials.push_back(pick.trial);
  return trials;
}

}  // namespace

TEST_CASE("of candidates that promise the same, slots go first to those with the fewest epochs left") {
  CHECK(trials_of(dealer_of(3, 2, 2, 0).deal(0, {1, 1, 0})) == std::vector<int>{2});
  // Slots 1 and 3 are dealt to stages 0 and 1, which are new trials and those of less than 3 epochs: there is none of
  // the latter. Slot 5 is dealt to those of less than 9, of which the one that has shown the least value gets it.
  CHECK(trials_of(dealer_of(3, 2, 2, 0).deal(0, {6, 7, 0})) == std::vector<int>{2, kNoTrial, 1, 0, kNoTrial, kNoTrial});
  CHECK(trials_of(dealer_of(3, 2, 2, 0).deal(5, {1, 1, 0})) == std::vector<int>{1});
  CHECK(trials_of(dealer_of(3, 2, 2, 0).deal(0, {6, 1, 0})) == std::vector<int>{2, kNoTrial, 1, 0});
  CHECK(trials_of(dealer_of(3, 2, 2, 0).deal(0, {9, 0, 0})) == std::vector<int>{2, 1, 0});
  CHECK(trials_of(dealer_of(1, 2, 2, 0).deal(0, {1, 3, 3})) == std::vector<int>{0, kNoTrial, kNoTrial, kNoTrial});
}

TEST_CASE("new trials of no promise are the next ones of the sequence, in its order") {
  const std::vector<Pick> picks = dealer_of(0, 3, 2, 100).deal(0, {5, 5, 0});
  REQUIRE(picks.size() == 5);
  for (int i = 0; i < 3; ++i) CHECK(picks[static_cast<std::size_t>(i)].x[0] == 100 * (i + 1));
}

TEST_CASE("stages are dealt to as well, and in each the trial that promises most is picked") {
  const Planner planner(kPlane, kNone, 1, options_of(6));
  const auto curve = [&](int trial, double x, std::vector<double> values) {
    const bool ended = values.size() == 9;
    return curve_of(trial, planner.vector_of(at(x, 0.5)), values, ended, Goal::kMinimize);
  };
  // Good on the left, bad on the right, known from two that have trained to their ends.
  const std::vector<SeenCurve> curves = {curve(0, 0.05, {5, 4, 3, 2.5, 2, 1.6, 1.3, 1.1, 1}),
                                         curve(1, 0.95, {9, 8, 7.5, 7, 6.8, 6.6, 6.5, 6.4, 6.4}),
                                         curve(2, 0.1, {5, 4}),
                                         curve(3, 0.9, {9, 8}),
                                         curve(4, 0.12, {5, 4, 3, 2.5}),
                                         curve(5, 0.88, {9, 8, 7.5, 7})};
  const std::vector<Pick> picks = planner.plan(curves, {6, 6, 0}, anything);
  REQUIRE(picks.size() == 6);
  std::set<int> trials;
  for (const Pick& pick : picks) trials.insert(pick.trial);
  CHECK(trials == std::set<int>{kNoTrial, 2, 4});
  for (const Pick& pick : picks) {
    if (pick.trial == kNoTrial) CHECK(pick.x[0] < 0.5);
  }
  // Without room, waiting trials alone; without any of these, new ones alone.
  std::set<int> waiting;
  for (const Pick& pick : planner.plan(curves, {2, 0, 0}, anything)) waiting.insert(pick.trial);
  CHECK(waiting == std::set<int>{2, 4});
  CHECK(planner.plan({curves[0], curves[1]}, {3, 0, 0}, anything).empty());
  CHECK(planner.plan({curves[0], curves[1]}, {3, 4, 4}, anything).size() == 4);
}

TEST_CASE("new trials go through one sequence, from where the first trials left it") {
  FreezeThawOptions options = options_of(4);
  options.random_percent = 100;
  const Space finite = {{"a", bounded(Kind::kIntUniform, 1, 6)}, kSplit[1]};
  struct Case {
    const Space& space;
    std::set<std::string> splitting;
  };
  for (const auto& [space, splitting] :
       {Case{kPlane, {}}, Case{kSplit, {}}, Case{finite, {}}, Case{kSplit, {"hidden"}}}) {
    const Planner planner(space, splitting, 5, options);
    const std::vector<Params> wanted = make_sobol(space, 5)->ask(0, 12, {});
    std::vector<SeenCurve> curves;
    for (int trial = 0; trial < 12; ++trial) {
      if (trial < 4) {
        const Vector x = planner.vector_of(wanted[static_cast<std::size_t>(trial)]);
        curves.push_back(curve_of(trial, x, {1.0 / (trial + 1)}, false, Goal::kMinimize));
        continue;
      }
      const std::vector<Pick> picks = planner.plan(curves, {0, 1, 1}, anything);
      REQUIRE_FALSE(picks.empty());
      REQUIRE(picks.back().trial == kNoTrial);
      // What splits arrays is that of the trials beside it; the rest of the point stays.
      const Vector off = picks.back().x - planner.vector_of(wanted[static_cast<std::size_t>(trial)]);
      CHECK((splitting.empty() ? off.norm() : std::abs(off[0])) < 1e-9);
      curves.push_back(curve_of(trial, picks.back().x, {2.0 / (trial + 1)}, false, Goal::kMinimize));
    }
  }
}

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

TEST_CASE("picks that train side by side share what splits arrays") {
  const Planner planner(kSplit, {"hidden"}, 1, options_of(4));
  std::vector<SeenCurve> curves;
  for (int i = 0; i < 12; ++i) {
    const std::int64_t hidden = 8 << i % 3;
    const Vector x = planner.vector_of({{"x", i / 12.0}, {"hidden", hidden}});
    curves.push_back(curve_of(i, x, {1.0 + std::sin(i), 0.5 + std::sin(i)}, false, Goal::kMinimize));
  }
  std::set<double> kinds;
  for (int epoch = 0; epoch < 12; ++epoch) {
    const std::vector<Pick> picks = planner.plan(curves, {4, 4, 0}, anything);
    REQUIRE(picks.size() == 4);
    for (const Pick& pick : picks) CHECK(pick.x[1] == picks[0].x[1]);
    kinds.insert(picks[0].x[1]);
    // Whoever asks for more picks, or for new ones alone, is told the same ones first.
    const std::vector<Pick> more = planner.plan(curves, {7, 7, 0}, anything);
    REQUIRE(more.size() == 7);
    std::vector<Vector> fresh, drawn;
    for (std::size_t i = 0; i < more.size(); ++i) {
      if (i < picks.size()) CHECK((more[i].trial == picks[i].trial && more[i].x == picks[i].x));
      if (more[i].trial == kNoTrial) fresh.push_back(more[i].x);
    }
    const int count = static_cast<int>(fresh.size());
    for (const Pick& pick : planner.plan(curves, {0, 100, count}, anything)) {
      if (pick.trial == kNoTrial) drawn.push_back(pick.x);
    }
    CHECK(drawn == fresh);
    curves[static_cast<std::size_t>(epoch)].values.push_back(0.4);
  }
  CHECK(kinds.size() > 1);
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
