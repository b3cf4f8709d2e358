// Several rules of early stopping together, and rules beside a method that stops trials itself.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <string>

#include "driven.hpp"
#include "search/stopping.hpp"

using namespace hfta::search;
using namespace hfta::search::testing;
using hfta::trials::Goal;

namespace {

struct Case {
  std::string name;
  std::vector<Stopping> rules;
};

const Stopping kThreshold{"threshold", {.min_epochs = 2, .upper = 1.2}};
const Stopping kPatience{"patience", {.min_epochs = 3, .patience = 2, .min_delta = 0.05}};
const Stopping kMedian{"median", {.min_trials = 3}};
const Stopping kAsha{"asha", {.min_epochs = 2, .eta = 3}};

const std::vector<Case> kCases = {
    {"threshold and median", {kThreshold, kMedian}},
    {"patience and asha", {kPatience, kAsha}},
    {"median and asha", {kMedian, kAsha}},
    {"percentile, sha and threshold",
     {{"percentile", {.min_trials = 2, .percentile = 50}}, {"sha", {.eta = 2}}, kThreshold}},
    {"everything",
     {{"target", {.value = 0.1}},
      kThreshold,
      kPatience,
      kMedian,
      kAsha,
      {"asha", {.eta = 4, .mode = AshaMode::kStop}}}},
};
const std::vector<std::pair<const char*, Curve>> kCurves = {
    {"crossing", crossing}, {"tied", tied}, {"diverging", diverging}, {"doomed", doomed}};
constexpr int kTrials = 40, kEpochs = 16;

std::unique_ptr<Scheduler> made(const Case& c) {
  return make_stopping(c.rules, kEpochs, Goal::kMinimize, {15, kTrials});
}

std::vector<Decision> decisions(Scheduler& scheduler, int trial, const std::vector<double>& values) {
  std::vector<Decision> all;
  for (std::size_t i = 0; i < values.size(); ++i) {
    all.push_back(scheduler.report(trial, static_cast<int>(i) + 1, values[i]));
  }
  return all;
}

}  // namespace

TEST_CASE("rules together decide alike at any width, in any order") {
  for (const Case& c : kCases) {
    for (const auto& [curve_name, curve] : kCurves) {
      INFO(c.name << ", " << curve_name);
      const std::vector<Outcome> wanted = drive(*made(c), kTrials, curve, 1, 1);
      unsigned seed = 0;
      for (const int width : {2, 5, 1000}) {
        for (int again = 0; again < 4; ++again) CHECK(drive(*made(c), kTrials, curve, width, ++seed) == wanted);
      }
    }
  }
}

TEST_CASE("rules together that are told everything again go on as before") {
  for (const Case& c : kCases) {
    for (const auto& [curve_name, curve] : kCurves) {
      INFO(c.name << ", " << curve_name);
      std::vector<Report> log;
      const auto first = made(c);
      (void)drive(*first, kTrials, curve, 5, 3, &log);
      for (unsigned seed = 0; seed < 6; ++seed) {
        std::vector<Report> order = log;
        std::stable_sort(order.begin(), order.end(),
                         [](const Report& a, const Report& b) { return a.epoch < b.epoch; });
        if (seed == 1) std::reverse(order.begin(), order.end());
        if (seed > 1) std::shuffle(order.begin(), order.end(), std::mt19937(seed));
        const auto second = made(c);
        for (const Report& report : order) {
          (void)second->report(report.trial, report.epoch, report.value);
          (void)second->take_verdicts();
        }
        for (const Report& report : log) {
          CHECK(second->target(report.trial) == first->target(report.trial));
          CHECK(second->report(report.trial, report.epoch, report.value) ==
                first->report(report.trial, report.epoch, report.value));
        }
      }
    }
  }
}

TEST_CASE("rules that judge a trial by its own values, worked by hand") {
  using D = Decision;
  struct Row {
    const char* rule;
    StoppingOptions options;
    Goal goal;
    std::vector<double> values;
    std::vector<D> wanted;
  };
  const D go = D::kContinue, done = D::kComplete, stop = D::kStop;
  const std::vector<Row> rows = {
      {"threshold", {.upper = 2}, Goal::kMinimize, {2, 1, 2.5}, {go, go, stop}},
      {"threshold", {.lower = 0.5}, Goal::kMaximize, {0.5, 0.4}, {go, stop}},
      {"threshold", {.min_epochs = 3, .upper = 2}, Goal::kMinimize, {9, 9, 9}, {go, go, stop}},
      {"patience", {.patience = 2}, Goal::kMinimize, {3, 2, 2, 1, 1.5, 1}, {go, go, go, go, go, done}},
      {"patience", {.patience = 2}, Goal::kMaximize, {3, 2, 2}, {go, go, done}},
      // 2.95 is no progress, 2.9 is, counted from 3.
      {"patience",
       {.patience = 2, .min_delta = 0.06},
       Goal::kMinimize,
       {3, 2.95, 2.9, 2.89, 2.88},
       {go, go, go, go, done}},
      {"patience", {.min_epochs = 4, .patience = 1}, Goal::kMinimize, {1, 1, 1, 1}, {go, go, go, done}},
      {"target", {.value = 0.9}, Goal::kMaximize, {0.5, 0.9}, {go, done}},
      {"target", {.value = 0.9}, Goal::kMinimize, {0.95, 0.91, 0.9}, {go, go, done}},
      {"patience", {.patience = 5}, Goal::kMinimize, {1, 1, 1, 1, 1, 1, 1}, {go, go, go, go, go, done, done}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.rule, row.values);
    const auto scheduler = make_stopping({{row.rule, row.options}}, 9, row.goal, {1});
    CHECK(decisions(*scheduler, 0, row.values) == row.wanted);
  }
}

TEST_CASE("a trial that a threshold stops does not rank at that rung") {
  // Three reach the rung, the first of them beyond the threshold: the best of the two others is promoted.
  const auto scheduler = make_stopping({{"threshold", {.lower = 0}}, {"asha", {.eta = 3}}}, 3, Goal::kMinimize, {3});
  CHECK(scheduler->report(0, 1, -5) == Decision::kStop);
  CHECK(scheduler->report(1, 1, 2) == Decision::kPause);
  CHECK(scheduler->report(2, 1, 1) == Decision::kContinue);
  const std::vector<Verdict> verdicts = scheduler->take_verdicts();
  REQUIRE(verdicts.size() == 1);
  CHECK(verdicts[0].trial == 1);
  CHECK(verdicts[0].decision == Decision::kStop);
}

TEST_CASE("own rules stand beside Hyperband and populations") {
  const std::vector<Stopping> rules = {kThreshold, {"patience", {.patience = 3}}};
  for (const auto& [curve_name, curve] : kCurves) {
    CAPTURE(curve_name);
    const auto made_one = [&] {
      return make_stopping_beside(make_hyperband({1, 9, 3}, Goal::kMinimize, {30}), rules, Goal::kMinimize);
    };
    const std::vector<Outcome> wanted = drive(*made_one(), 30, curve, 1, 1);
    for (unsigned seed = 2; seed < 8; ++seed) CHECK(drive(*made_one(), 30, curve, 7, seed) == wanted);
  }
}
