// Median and asha against plain references, at any width and in any order.
#include "search/stopping.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "base/error.hpp"
#include "driven.hpp"

using namespace hfta::search;
using namespace hfta::search::testing;
using hfta::trials::better;
using hfta::trials::Goal;

namespace {

struct Study {
  StoppingOptions options;
  Goal goal = Goal::kMinimize;
  std::vector<int> caps;
};

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// Trial after trial, each judged by those before it.
std::vector<Outcome> median_reference(const Study& study, const Curve& curve) {
  std::vector<Outcome> outcomes;
  std::vector<std::vector<double>> means(static_cast<std::size_t>(study.options.max_epochs));  // by epoch
  for (int trial = 0; trial < study.caps.back(); ++trial) {
    Outcome& outcome = outcomes.emplace_back();
    double sum = 0, best = 0;
    while (outcome.state == State::kRunning) {
      const double value = curve(trial, ++outcome.epochs);
      sum += value;
      if (outcome.epochs == 1 || better(value, best, study.goal)) best = value;
      if (!std::isfinite(value)) {
        outcome.state = State::kFail;
      } else if (outcome.epochs == study.options.max_epochs) {
        outcome.state = State::kComplete;
      } else if (outcome.epochs >= study.options.min_epochs) {
        std::vector<double>& others = means[static_cast<std::size_t>(outcome.epochs)];
        const bool enough = others.size() >= static_cast<std::size_t>(study.options.min_trials);
        if (enough && better(median_of(others), best, study.goal)) outcome.state = State::kPruned;
        others.push_back(sum / outcome.epochs);
      }
    }
  }
  return outcomes;
}

// Rung after rung, each as a list in the order in which trials count there. `events`, if given, takes the first rung's
// promotions after each of its trials.
void asha_race(const Study& study, int first, int end, const Curve& curve, std::vector<Outcome>& outcomes,
               std::vector<std::vector<int>>* events = nullptr) {
  std::vector<int> epochs = asha_rungs(study.options), arrivals;
  for (int trial = first; trial < end; ++trial) arrivals.push_back(trial);
  for (std::size_t i = 0; i < epochs.size(); ++i) {
    std::vector<int> ranked, promoted;
    const auto go_on = [&](int trial) {
      if (std::count(promoted.begin(), promoted.end(), trial) == 0) promoted.push_back(trial);
    };
    for (const int trial : arrivals) {
      Outcome& outcome = outcomes[static_cast<std::size_t>(trial)];
      while (outcome.state == State::kRunning && outcome.epochs < epochs[i]) {
        if (!std::isfinite(curve(trial, ++outcome.epochs))) outcome.state = State::kFail;
      }
      if (outcome.state == State::kFail) continue;
      ranked.push_back(trial);
      std::vector<int> best = ranked;
      std::stable_sort(best.begin(), best.end(),
                       [&](int a, int b) { return better(curve(a, epochs[i]), curve(b, epochs[i]), study.goal); });
      const std::size_t before = promoted.size();
      for (std::size_t k = 0; k < ranked.size() / static_cast<std::size_t>(study.options.eta); ++k) go_on(best[k]);
      if (i == 0 && events != nullptr) {
        events->emplace_back(promoted.begin() + static_cast<std::ptrdiff_t>(before), promoted.end());
      }
    }
    if (i + 1 == epochs.size()) {
      for (const int trial : ranked) outcomes[static_cast<std::size_t>(trial)].state = State::kComplete;
      return;
    }
    if (promoted.empty() && !ranked.empty()) {
      promoted.push_back(*std::min_element(ranked.begin(), ranked.end(), [&](int a, int b) {
        return better(curve(a, epochs[i]), curve(b, epochs[i]), study.goal);
      }));
    }
    for (const int trial : ranked) {
      if (std::count(promoted.begin(), promoted.end(), trial) == 0) {
        outcomes[static_cast<std::size_t>(trial)].state = State::kPruned;
      }
    }
    arrivals = promoted;
  }
}

std::vector<Outcome> asha_reference(const Study& study, const Curve& curve) {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(study.caps.back()));
  int first = 0;
  for (const int cap : study.caps) asha_race(study, std::exchange(first, cap), cap, curve, outcomes);
  return outcomes;
}

struct Rule {
  const char* name;
  std::vector<Outcome> (*reference)(const Study&, const Curve&);
};
const std::vector<Rule> kRules = {{"median", median_reference}, {"asha", asha_reference}};

const std::vector<Study> kStudies = {
    {{.max_epochs = 9}, Goal::kMinimize, {40}},
    {{.max_epochs = 27, .min_epochs = 3, .min_trials = 2, .eta = 2}, Goal::kMaximize, {60}},
    {{.max_epochs = 10, .min_epochs = 2, .min_trials = 1, .eta = 4}, Goal::kMinimize, {1}},
    {{.max_epochs = 16, .min_trials = 3, .eta = 4}, Goal::kMinimize, {2, 3, 50}},
    {{.max_epochs = 1}, Goal::kMaximize, {5}},
    {{.max_epochs = 4, .min_epochs = 4}, Goal::kMaximize, {5}},
    {{.max_epochs = 5, .min_trials = 30, .eta = 50}, Goal::kMinimize, {20, 49}},
};
const std::vector<std::pair<const char*, Curve>> kCurves = {
    {"crossing", crossing}, {"tied", tied}, {"diverging", diverging}, {"doomed", doomed}};

}  // namespace

TEST_CASE("early stopping agrees with its reference at any width, in any order") {
  for (const Rule& rule : kRules) {
    for (const Study& study : kStudies) {
      for (const auto& [curve_name, curve] : kCurves) {
        INFO(rule.name << ", " << curve_name << ", " << study.caps.back() << " trials of " << study.options.max_epochs);
        const std::vector<Outcome> wanted = rule.reference(study, curve);
        unsigned seed = 0;
        for (const int width : {1, 3, 7, 1000}) {
          for (int again = 0; again < 3; ++again) {
            const auto scheduler = stopping_rule(rule.name).make(study.options, study.goal, study.caps);
            CHECK(drive(*scheduler, study.caps.back(), curve, width, ++seed) == wanted);
          }
        }
      }
    }
  }
}

// As when a store is read again: all reports of a study that was interrupted, in another order, and then the rest.
TEST_CASE("a scheduler that is told everything again goes on as the first would have") {
  for (const Rule& rule : kRules) {
    for (const Study& study : kStudies) {
      for (const auto& [curve_name, curve] : kCurves) {
        INFO(rule.name << ", " << curve_name << ", " << study.caps.back() << " trials of " << study.options.max_epochs);
        std::vector<Report> log;
        const auto first = stopping_rule(rule.name).make(study.options, study.goal, study.caps);
        (void)drive(*first, study.caps.back(), curve, 5, 3, &log);
        for (unsigned seed = 0; seed < 8; ++seed) {
          std::vector<Report> order = log;
          std::stable_sort(order.begin(), order.end(),
                           [](const Report& a, const Report& b) { return a.epoch < b.epoch; });
          if (seed == 1) std::reverse(order.begin(), order.end());
          if (seed > 1) std::shuffle(order.begin(), order.end(), std::mt19937(seed));
          const auto second = stopping_rule(rule.name).make(study.options, study.goal, study.caps);
          std::map<int, Decision> latest;
          for (const Report& report : order) {
            const Decision decision = second->report(report.trial, report.epoch, report.value);
            if (report.epoch == second->target(report.trial) || decision != Decision::kContinue) {
              latest[report.trial] = decision;
            }
            for (const Verdict& verdict : second->take_verdicts()) latest[verdict.trial] = verdict.decision;
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
}

// Li et al.'s rule on a sequence of twelve values, worked by hand: who is promoted after each of them.
TEST_CASE("asha promotes whom the paper's algorithm promotes") {
  const std::vector<double> values = {3, 1, 2, 5, 0, 4, 1.5, 0.5, 6, 2.5, 0.2, 1.2};
  const std::vector<std::vector<int>> promoted = {{}, {}, {1}, {}, {4}, {}, {}, {7}, {}, {}, {10}, {}};
  const auto scheduler = make_asha({.max_epochs = 3}, Goal::kMinimize, {static_cast<int>(values.size())});
  for (int trial = 0; trial < 12; ++trial) {
    CAPTURE(trial);
    const Decision decision = scheduler->report(trial, 1, values[static_cast<std::size_t>(trial)]);
    std::vector<int> found;
    if (decision == Decision::kContinue) found.push_back(trial);
    for (const Verdict& verdict : scheduler->take_verdicts()) {
      if (verdict.decision == Decision::kContinue) found.push_back(verdict.trial);
    }
    CHECK(found == promoted[static_cast<std::size_t>(trial)]);
  }
}

TEST_CASE("asha stops a trial as soon as it can no longer be promoted") {
  const auto scheduler = make_asha({.max_epochs = 9}, Goal::kMinimize, {9});
  CHECK(scheduler->report(0, 1, 0.1) == Decision::kPause);
  CHECK(scheduler->report(1, 1, 0.2) == Decision::kPause);
  CHECK(scheduler->report(2, 1, 0.3) == Decision::kPause);
  CHECK(scheduler->report(3, 1, 0.4) == Decision::kStop);  // three of nine at most
  CHECK(scheduler->report(4, 1, 0.0) == Decision::kContinue);
  const std::vector<Verdict> verdicts = scheduler->take_verdicts();
  REQUIRE(verdicts.size() == 2);  // 0 was promoted when there were three
  CHECK(verdicts[0].trial == 0);
  CHECK(verdicts[0].decision == Decision::kContinue);
  CHECK(verdicts[1].trial == 2);
  CHECK(verdicts[1].decision == Decision::kStop);
}

TEST_CASE("median waits for a trial that was drawn earlier and is behind") {
  const auto scheduler = make_median({.max_epochs = 9, .min_trials = 2}, Goal::kMinimize, {});
  CHECK(scheduler->report(1, 1, 0.1) == Decision::kPause);
  CHECK(scheduler->report(2, 1, 0.9) == Decision::kPause);
  CHECK(scheduler->take_verdicts().empty());
  CHECK(scheduler->report(0, 1, 0.2) == Decision::kContinue);
  const std::vector<Verdict> verdicts = scheduler->take_verdicts();
  REQUIRE(verdicts.size() == 2);
  CHECK(verdicts[0].trial == 1);
  CHECK(verdicts[0].decision == Decision::kContinue);
  CHECK(verdicts[1].trial == 2);
  CHECK(verdicts[1].decision == Decision::kStop);
  CHECK(scheduler->report(1, 2, 0.1) == Decision::kPause);
  scheduler->fail(0);
  CHECK(scheduler->take_verdicts().size() == 1);
}

TEST_CASE("impossible options of early stopping are refused") {
  using hfta::Error;
  CHECK_THROWS_AS(make_asha({.max_epochs = 3, .min_epochs = 4}, Goal::kMinimize, {9}), Error);
  CHECK_THROWS_AS(make_asha({.max_epochs = 3, .eta = 1}, Goal::kMinimize, {9}), Error);
  CHECK_THROWS_AS(make_asha({.max_epochs = 3}, Goal::kMinimize, {9, 8}), Error);
  CHECK_THROWS_AS(make_median({.max_epochs = 0}, Goal::kMinimize, {}), Error);
}

TEST_CASE("every rule reads fields that there are") {
  for (const StoppingRule& rule : stopping_rules()) {
    CAPTURE(rule.name);
    CHECK(&stopping_rule(rule.name) == &rule);
    for (const std::string_view name : rule.reads) {
      const auto& fields = stopping_fields();
      CHECK(std::any_of(fields.begin(), fields.end(), [&](const StoppingField& field) { return field.name == name; }));
    }
  }
}
