// Which trials freeze-thaw picks for the slots, new ones included.

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "search/freeze_thaw/dealer.hpp"
#include "search/freeze_thaw/planner.hpp"
#include "search/sampler.hpp"
#include "setting.hpp"

using namespace hfta;
using namespace hfta::search;
using namespace hfta::search::freeze_thaw;
using namespace hfta::search::freeze_thaw::testing;
using SeenCurve = hfta::search::freeze_thaw::Curve;
using Eigen::Index;
using trials::Goal;
using Kind = trials::DistributionKind;

namespace {

bool anything(const Vector&) { return true; }

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
