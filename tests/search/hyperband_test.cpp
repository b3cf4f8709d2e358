#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "base/error.hpp"
#include "base/random.hpp"
#include "driven.hpp"
#include "search/scheduler.hpp"

using namespace hfta::search;
using hfta::trials::Goal;
using hfta::trials::State;
using namespace hfta::search::testing;

namespace {

struct Study {
  HyperbandOptions options;
  Goal goal = Goal::kMinimize;
  std::vector<int> caps;
};

// Hyperband as the paper has it, one bracket after the other, each rung as a whole: what the scheduler is held to. The
// paper does not cut brackets: a rung of a cut one keeps at least one trial.
std::vector<Outcome> reference(const Study& study, const Curve& curve) {
  const int max = study.options.max_epochs, eta = study.options.eta;
  int s_max = 0;
  for (std::int64_t r = study.options.min_epochs; r * eta <= max; r *= eta) ++s_max;
  const auto power = [eta](int k) {
    std::int64_t p = 1;
    while (k-- > 0) p *= eta;
    return p;
  };
  const auto full_size = [&](int s) {
    std::int64_t n = 0;
    while (n * (s + 1) < (s_max + 1) * power(s)) ++n;
    return static_cast<int>(n);
  };
  std::vector<int> caps = study.caps;
  if (caps.empty()) {
    caps.push_back(0);
    for (int s = 0; s <= s_max; ++s) caps[0] += full_size(s);
  }
  std::vector<Outcome> outcomes;
  int s = s_max;
  for (const int cap : caps) {
    while (static_cast<int>(outcomes.size()) < cap) {
      const int first = static_cast<int>(outcomes.size()), n = std::min(full_size(s), cap - first);
      std::vector<int> alive;
      for (int t = first; t < first + n; ++t) alive.push_back(t);
      outcomes.resize(static_cast<std::size_t>(first + n));
      for (int i = 0; i <= s; ++i) {
        const int epochs = static_cast<int>(max / power(s - i));
        std::vector<std::pair<double, int>> ranking;
        for (const int t : alive) {
          Outcome& outcome = outcomes[static_cast<std::size_t>(t)];
          while (outcome.state == State::kRunning && outcome.epochs < epochs) {
            if (!std::isfinite(curve(t, ++outcome.epochs))) outcome.state = State::kFail;
          }
          const double sign = study.goal == Goal::kMinimize ? 1 : -1;
          if (outcome.state == State::kRunning) ranking.emplace_back(sign * curve(t, epochs), t);
        }
        std::sort(ranking.begin(), ranking.end());
        const auto keep =
            i == s ? ranking.size() : static_cast<std::size_t>(std::max<std::int64_t>(1, n / power(i + 1)));
        alive.clear();
        for (std::size_t k = 0; k < ranking.size(); ++k) {
          const int t = ranking[k].second;
          if (k < keep) alive.push_back(t);
          if (k >= keep) outcomes[static_cast<std::size_t>(t)].state = State::kPruned;
        }
      }
      for (const int t : alive) outcomes[static_cast<std::size_t>(t)].state = State::kComplete;
      s = s == 0 ? s_max : s - 1;
    }
  }
  return outcomes;
}

std::vector<Outcome> drive(const Study& study, const Curve& curve, int width, unsigned seed, std::vector<Report>* log) {
  const auto scheduler = make_hyperband(study.options, study.goal, study.caps);
  return drive(*scheduler, scheduler->capacity().value(), curve, width, seed, log);
}

int count(const std::vector<Outcome>& outcomes, State state) {
  return static_cast<int>(
      std::count_if(outcomes.begin(), outcomes.end(), [&](const Outcome& o) { return o.state == state; }));
}

int epochs_of(const std::vector<Outcome>& outcomes) {
  int sum = 0;
  for (const Outcome& o : outcomes) sum += o.epochs;
  return sum;
}

}  // namespace

TEST_CASE("Whole studies have the known counts") {
  struct Case {
    Study study;
    int trials, complete, epochs;
  };
  const std::vector<Case> cases = {
      {{{1, 27, 3}, Goal::kMaximize, {}}, 49, 8, 357},
      {{{1, 27, 3}, Goal::kMaximize, {98}}, 98, 16, 714},
      {{{1, 81, 3}, Goal::kMinimize, {}}, 143, 10, 1581},
      {{{1, 1, 3}, Goal::kMinimize, {5}}, 5, 5, 5},
  };
  for (const Case& c : cases) {
    const auto outcomes = drive(c.study, crossing, 7, 1, nullptr);
    CHECK(static_cast<int>(outcomes.size()) == c.trials);
    CHECK(count(outcomes, State::kComplete) == c.complete);
    CHECK(count(outcomes, State::kPruned) == c.trials - c.complete);
    CHECK(epochs_of(outcomes) == c.epochs);
    CHECK(make_hyperband(c.study.options, c.study.goal, c.study.caps)->planned_epochs(0, c.trials) == c.epochs);
  }
}

TEST_CASE("Studies agree with the paper's algorithm at any width, in any order") {
  const std::vector<Study> studies = {
      {{1, 27, 3}, Goal::kMinimize, {}},           {{1, 27, 3}, Goal::kMaximize, {98}},
      {{1, 81, 3}, Goal::kMinimize, {}},           {{1, 243, 3}, Goal::kMaximize, {}},
      {{1, 16, 2}, Goal::kMinimize, {100}},        {{1, 64, 4}, Goal::kMaximize, {}},
      {{1, 125, 5}, Goal::kMinimize, {}},          {{2, 50, 3}, Goal::kMaximize, {60}},
      {{1, 100, 3}, Goal::kMinimize, {}},          {{5, 5, 3}, Goal::kMinimize, {4}},
      {{1, 27, 3}, Goal::kMinimize, {1}},          {{1, 27, 3}, Goal::kMaximize, {26}},
      {{1, 27, 3}, Goal::kMinimize, {51}},         {{1, 27, 3}, Goal::kMinimize, {30, 98}},
      {{1, 27, 3}, Goal::kMaximize, {30, 31, 60}},
  };
  const std::vector<std::pair<const char*, Curve>> curves = {
      {"crossing", crossing}, {"tied", tied}, {"diverging", diverging}, {"doomed", doomed}};
  for (const Study& study : studies) {
    for (const auto& [name, curve] : curves) {
      INFO("R=" << study.options.max_epochs << " eta=" << study.options.eta << " curve=" << name);
      const auto wanted = reference(study, curve);
      unsigned seed = 0;
      for (const int width : {1, 4, 1000}) CHECK(drive(study, curve, width, ++seed, nullptr) == wanted);
    }
  }
}

TEST_CASE("Verdicts do not depend on the order in which reports come") {
  const Study study = {{1, 27, 3}, Goal::kMinimize, {30, 60}};
  for (const Curve& curve : {Curve(crossing), Curve(tied), Curve(diverging)}) {
    std::vector<Report> log;
    const auto wanted = drive(study, curve, 5, 3, &log);
    using Verdicts = std::multiset<std::pair<int, Decision>>;
    Verdicts first;
    for (unsigned seed = 0; seed < 20; ++seed) {
      // In trial order, as a store gives them, backwards, and shuffled across and within trials.
      std::vector<Report> order = log;
      std::stable_sort(order.begin(), order.end(), [](const Report& a, const Report& b) { return a.trial < b.trial; });
      if (seed == 1) std::reverse(order.begin(), order.end());
      if (seed > 1) std::shuffle(order.begin(), order.end(), std::mt19937(seed));
      const auto scheduler = make_hyperband(study.options, study.goal, study.caps);
      Verdicts verdicts;
      for (const Report& report : order) {
        (void)scheduler->report(report.trial, report.epoch, report.value);
        for (const Verdict& v : scheduler->take_verdicts()) verdicts.emplace(v.trial, v.decision);
      }
      for (std::size_t t = 0; t < wanted.size(); ++t) {
        if (wanted[t].state == State::kFail) continue;  // whether it had verdicts to take depends on when it failed
        CHECK(scheduler->target(static_cast<int>(t)) == wanted[t].epochs);
      }
      std::erase_if(verdicts,
                    [&](const auto& v) { return wanted[static_cast<std::size_t>(v.first)].state == State::kFail; });
      if (seed == 0) first = verdicts;
      CHECK(verdicts == first);
    }
    CHECK(std::count_if(first.begin(), first.end(), [](const auto& v) { return v.second == Decision::kStop; }) ==
          count(wanted, State::kPruned));
  }
}

TEST_CASE("A rung waits for everyone, those not yet drawn too") {
  const auto scheduler = make_hyperband({1, 3, 3}, Goal::kMinimize, {});  // brackets: 3 trials (1, 3 epochs), 2 trials
  CHECK(scheduler->capacity() == 5);
  CHECK(scheduler->max_epochs() == 3);
  CHECK(scheduler->target(0) == 1);
  CHECK(scheduler->target(3) == 3);
  CHECK(scheduler->report(2, 1, 0.3) == Decision::kPause);
  CHECK(scheduler->report(0, 1, 0.1) == Decision::kPause);
  CHECK(scheduler->take_verdicts().empty());
  CHECK(scheduler->report(3, 1, 9) == Decision::kContinue);  // another bracket goes its own way
  CHECK(scheduler->report(1, 1, 0.2) == Decision::kPause);   // the last one pauses like the others
  const auto verdicts = scheduler->take_verdicts();
  REQUIRE(verdicts.size() == 3);
  for (int t = 0; t < 3; ++t) {
    CHECK(verdicts[static_cast<std::size_t>(t)].trial == t);
    CHECK(verdicts[static_cast<std::size_t>(t)].decision == (t == 0 ? Decision::kContinue : Decision::kStop));
  }
  CHECK(scheduler->take_verdicts().empty());
  CHECK(scheduler->target(0) == 3);
  CHECK(scheduler->report(0, 2, 5) == Decision::kContinue);
  CHECK(scheduler->report(0, 3, 5) == Decision::kComplete);
  CHECK(scheduler->report(1, 1, 0.2) == Decision::kStop);  // heard before: the same answer as ever
}

TEST_CASE("The best trial of a bracket that is cut short completes") {
  const auto scheduler = make_hyperband({1, 27, 3}, Goal::kMaximize, {2});
  CHECK(scheduler->report(0, 1, 0.8) == Decision::kPause);
  CHECK(scheduler->report(1, 1, 0.9) == Decision::kPause);
  const auto verdicts = scheduler->take_verdicts();
  REQUIRE(verdicts.size() == 2);
  CHECK(verdicts[0].decision == Decision::kStop);
  CHECK(verdicts[1].decision == Decision::kContinue);
  CHECK(scheduler->target(1) == 3);
}

TEST_CASE("A single trial completes after all of its epochs") {
  const auto scheduler = make_hyperband({1, 9, 3}, Goal::kMinimize, {1});
  CHECK(scheduler->planned_epochs(0, 1) == 9);
  for (int epoch = 1; epoch <= 9; ++epoch) {
    const bool rung = epoch == 1 || epoch == 3;
    CAPTURE(epoch);
    CHECK(scheduler->report(0, epoch, 1.0 / epoch) == (epoch == 9 ? Decision::kComplete
                                                       : rung     ? Decision::kPause
                                                                  : Decision::kContinue));
    const auto verdicts = scheduler->take_verdicts();
    REQUIRE(verdicts.size() == (rung ? 1 : 0));
    if (rung) CHECK(verdicts.front().decision == Decision::kContinue);
  }
}

TEST_CASE("A trial that fails without a value counts as started and never ranks") {
  struct Case {
    std::vector<int> failed_first, failed_last;  // before and after the others report at rung 0
    std::set<int> kept;
  };
  // Nine trials, the lower the better; three go on.
  const std::vector<Case> cases = {
      {{0}, {}, {1, 2, 3}},                 // the best is gone: the next best moves up
      {{8, 7}, {}, {0, 1, 2}},              // three of those started, not of those left
      {{0, 1, 2, 3, 4, 5, 6}, {}, {7, 8}},  // at most the finite
      {{}, {0}, {1, 2, 3}},                 // failing may be what the rung waits for
      {{0, 1, 2, 3}, {4, 5, 6, 7, 8}, {}},  // nobody left
      {{0, 0, 0}, {}, {1, 2, 3}},           // told twice
  };
  for (const Case& c : cases) {
    const auto scheduler = make_hyperband({1, 9, 3}, Goal::kMinimize, {9});
    std::set<int> silent(c.failed_first.begin(), c.failed_first.end());
    silent.insert(c.failed_last.begin(), c.failed_last.end());
    for (const int t : c.failed_first) scheduler->fail(t);
    for (int t = 8; t >= 0; --t) {
      if (silent.count(t) == 0) CHECK(scheduler->report(t, 1, t) == Decision::kPause);
    }
    if (!c.failed_last.empty()) CHECK(scheduler->take_verdicts().empty());
    for (const int t : c.failed_last) scheduler->fail(t);
    std::set<int> kept, heard;
    for (const Verdict& v : scheduler->take_verdicts()) {
      heard.insert(v.trial);
      if (v.decision == Decision::kContinue) kept.insert(v.trial);
    }
    CHECK(kept == c.kept);
    CHECK(heard.size() == 9 - silent.size());
    for (const int t : kept) CHECK(scheduler->target(t) == 3);
  }
}

TEST_CASE("A trial that fails while paused keeps its rank, so that others' verdicts do not depend on when it failed") {
  const auto kept_when = [](bool before) {
    const auto scheduler = make_hyperband({1, 9, 3}, Goal::kMinimize, {9});
    for (int t = 0; t < 8; ++t) (void)scheduler->report(t, 1, t);
    if (before) scheduler->fail(1);
    (void)scheduler->report(8, 1, 8);
    std::set<int> kept;
    for (const Verdict& v : scheduler->take_verdicts()) {
      if (v.decision == Decision::kContinue && v.trial != 1) kept.insert(v.trial);
      if (before) CHECK(v.trial != 1);  // nothing more is decided about it
    }
    if (!before) scheduler->fail(1);
    // The next rung does not wait for it: two of three report, and the better goes on.
    (void)scheduler->report(0, 3, 5);
    (void)scheduler->report(2, 3, 4);
    const auto verdicts = scheduler->take_verdicts();
    REQUIRE(verdicts.size() == 2);
    CHECK(verdicts[0].decision == Decision::kStop);
    CHECK(verdicts[1].decision == Decision::kContinue);
    CHECK(scheduler->report(1, 2, 0) == Decision::kStop);
    return kept;
  };
  CHECK(kept_when(true) == std::set<int>{0, 2});
  CHECK(kept_when(false) == std::set<int>{0, 2});
}

TEST_CASE("Reports that cannot be are refused") {
  const auto refused = [](const std::function<void(Scheduler&)>& action) {
    const auto scheduler = make_hyperband({1, 3, 3}, Goal::kMinimize, {});
    for (int t = 0; t < 3; ++t) (void)scheduler->report(t, 1, t);
    (void)scheduler->take_verdicts();
    try {
      action(*scheduler);
    } catch (const hfta::Error& error) {
      CHECK(error.kind() == hfta::ErrorKind::kInternal);
      return true;
    }
    return false;
  };
  CHECK(refused([](Scheduler& s) { (void)s.report(0, 0, 1); }));
  CHECK(refused([](Scheduler& s) { (void)s.report(0, 4, 1); }));
  CHECK(refused([](Scheduler& s) { (void)s.report(5, 1, 1); }));
  CHECK(refused([](Scheduler& s) { (void)s.report(-1, 1, 1); }));
  CHECK(refused([](Scheduler& s) { (void)s.target(5); }));
  CHECK(refused([](Scheduler& s) { s.fail(5); }));
  CHECK(refused([](Scheduler& s) { (void)s.report(1, 2, 1); }));    // it was stopped after epoch 1
  CHECK(refused([](Scheduler& s) { (void)s.report(0, 1, 0.5); }));  // it said 0 before
  CHECK_FALSE(refused([](Scheduler& s) { (void)s.report(0, 1, 0); }));
  CHECK_FALSE(refused([](Scheduler& s) { (void)s.report(0, 2, 1); }));
}

TEST_CASE("Planned epochs of the rest shrink to nothing") {
  const auto scheduler = make_hyperband({1, 27, 3}, Goal::kMinimize, {98});
  CHECK(scheduler->planned_epochs(0, 98) == 714);
  CHECK(scheduler->planned_epochs(49, 49) == 357);
  CHECK(scheduler->planned_epochs(98, 0) == 0);
  for (int n = 0; n < 98; ++n) {
    CHECK(scheduler->planned_epochs(0, n) + scheduler->planned_epochs(n, 98 - n) == 714);
  }
}
