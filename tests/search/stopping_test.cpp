// Rules of early stopping against plain references, at any width and in any order.
#include "search/stopping.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
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

// Trial after trial, each judged after some epochs by what those before it were when they had come as far.
using Values = std::vector<double>;  // after epochs 1, 2, ...
using Judge = std::function<bool(const Values& own, const std::vector<Values>& others)>;
std::vector<Outcome> in_order_reference(const Study& study, const Curve& curve, const std::vector<int>& epochs,
                                        const Judge& stops) {
  std::vector<Outcome> outcomes;
  std::vector<Values> all;
  for (int trial = 0; trial < study.caps.back(); ++trial) {
    Outcome& outcome = outcomes.emplace_back();
    Values own;
    while (outcome.state == State::kRunning) {
      own.push_back(curve(trial, ++outcome.epochs));
      if (!std::isfinite(own.back())) {
        own.pop_back();
        outcome.state = State::kFail;
      } else if (outcome.epochs == study.options.max_epochs) {
        outcome.state = State::kComplete;
      } else if (std::count(epochs.begin(), epochs.end(), outcome.epochs) > 0) {
        std::vector<Values> others;
        for (Values one : all) {
          if (one.size() < own.size()) continue;
          one.resize(own.size());
          others.push_back(one);
        }
        if (stops(own, others)) outcome.state = State::kPruned;
      }
    }
    all.push_back(own);
  }
  return outcomes;
}

double best_of(const Values& values, Goal goal) {
  return goal == Goal::kMinimize ? *std::min_element(values.begin(), values.end())
                                 : *std::max_element(values.begin(), values.end());
}

// Best first.
Values ranked(Values values, Goal goal) {
  std::sort(values.begin(), values.end(), [=](double a, double b) { return better(a, b, goal); });
  return values;
}

std::vector<Outcome> percentile_reference(const Study& study, const Curve& curve) {
  std::vector<int> epochs;
  for (int epoch = study.options.min_epochs; epoch < study.options.max_epochs; ++epoch) epochs.push_back(epoch);
  return in_order_reference(study, curve, epochs, [&](const Values& own, const std::vector<Values>& others) {
    if (others.size() < static_cast<std::size_t>(study.options.min_trials)) return false;
    Values last;
    for (const Values& one : others) last.push_back(one.back());
    last = ranked(last, study.goal);
    const double at = static_cast<double>(last.size() - 1) * study.options.percentile / 100;
    const auto below = static_cast<std::size_t>(at);
    const double above = last[std::min(below + 1, last.size() - 1)];
    const double percentile = last[below] + (above - last[below]) * (at - static_cast<double>(below));
    return better(percentile, best_of(own, study.goal), study.goal);
  });
}

std::vector<Outcome> asha_stop_reference(const Study& study, const Curve& curve) {
  return in_order_reference(
      study, curve, asha_rungs(study.options), [&](const Values& own, const std::vector<Values>& others) {
        Values all = {own.back()};
        for (const Values& one : others) all.push_back(one.back());
        const std::size_t kept = std::max<std::size_t>(all.size() / static_cast<std::size_t>(study.options.eta), 1);
        return better(ranked(all, study.goal)[kept - 1], own.back(), study.goal);
      });
}

std::vector<Outcome> bands_reference(const Study& study, const Curve& curve) {
  return in_order_reference(
      study, curve, bands_of(study.options), [&](const Values& own, const std::vector<Values>& others) {
        Values all = {best_of(own, study.goal)};
        for (const Values& one : others) all.push_back(best_of(one, study.goal));
        const std::size_t place = all.size() / static_cast<std::size_t>(study.options.eta);
        return place < all.size() && better(ranked(all, study.goal)[place], best_of(own, study.goal), study.goal);
      });
}

std::vector<Outcome> sha_reference(const Study& study, const Curve& curve) {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(study.caps.back()));
  for (int first = 0; const int cap : study.caps) {
    std::vector<int> left;
    for (int trial = std::exchange(first, cap); trial < cap; ++trial) left.push_back(trial);
    auto size = left.size();
    for (const int epochs : asha_rungs(study.options)) {
      std::stable_sort(left.begin(), left.end(), [&](int a, int b) {
        const int at = outcomes[static_cast<std::size_t>(a)].epochs;
        return at > 0 && better(curve(a, at), curve(b, at), study.goal);
      });
      for (std::size_t i = size; i < left.size(); ++i)
        outcomes[static_cast<std::size_t>(left[i])].state = State::kPruned;
      if (left.size() > size) left.resize(size);
      for (const int trial : left) {
        Outcome& outcome = outcomes[static_cast<std::size_t>(trial)];
        while (outcome.state == State::kRunning && outcome.epochs < epochs) {
          if (!std::isfinite(curve(trial, ++outcome.epochs))) outcome.state = State::kFail;
        }
      }
      std::erase_if(left, [&](int trial) { return outcomes[static_cast<std::size_t>(trial)].state == State::kFail; });
      std::sort(left.begin(), left.end());
      size = std::max<std::size_t>(1, size / static_cast<std::size_t>(study.options.eta));
    }
    for (const int trial : left) outcomes[static_cast<std::size_t>(trial)].state = State::kComplete;
  }
  return outcomes;
}

struct Rule {
  const char* name;
  std::vector<Outcome> (*reference)(const Study&, const Curve&);
  AshaMode mode = AshaMode::kPromote;

  [[nodiscard]] std::unique_ptr<Scheduler> make(const Study& study) const {
    StoppingOptions options = study.options;
    options.mode = mode;
    return make_stopping({{name, options}}, options.max_epochs, study.goal, study.caps);
  }
};
const std::vector<Rule> kRules = {
    {"median", median_reference},         {"asha", asha_reference},   {"asha", asha_stop_reference, AshaMode::kStop},
    {"percentile", percentile_reference}, {"bands", bands_reference}, {"sha", sha_reference}};

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
            const auto scheduler = rule.make(study);
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
        const auto first = rule.make(study);
        (void)drive(*first, study.caps.back(), curve, 5, 3, &log);
        for (unsigned seed = 0; seed < 8; ++seed) {
          std::vector<Report> order = log;
          std::stable_sort(order.begin(), order.end(),
                           [](const Report& a, const Report& b) { return a.epoch < b.epoch; });
          if (seed == 1) std::reverse(order.begin(), order.end());
          if (seed > 1) std::shuffle(order.begin(), order.end(), std::mt19937(seed));
          const auto second = rule.make(study);
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

// The same twelve values; who goes on is worked by hand from Optuna's SuccessiveHalvingPruner, and agrees with a run of
// it.
TEST_CASE("asha that stops keeps whom Optuna's pruner keeps") {
  const std::vector<double> values = {3, 1, 2, 5, 0, 4, 1.5, 0.5, 6, 2.5, 0.2, 1.2};
  const auto scheduler = make_asha_stopping({.max_epochs = 3}, Goal::kMinimize);
  std::string kept;
  for (int trial = 0; trial < 12; ++trial) {
    kept += scheduler->report(trial, 1, values[static_cast<std::size_t>(trial)]) == Decision::kContinue ? 'K' : '.';
  }
  CHECK(kept == "KK..K..K..K.");
}

TEST_CASE("bands are where W&B has them") {
  CHECK(bands_of({.max_epochs = 100, .min_epochs = 3, .eta = 3}) == std::vector<int>{3, 9, 27, 81});
  CHECK(bands_of({.max_epochs = 27, .eta = 3, .max_iter = 27, .s = 2}) == std::vector<int>{3, 9});
  CHECK(bands_of({.max_epochs = 20, .eta = 2, .max_iter = 100, .s = 9}) == std::vector<int>{1, 3, 6, 12});
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

TEST_CASE("a median of huge values is one") {
  // Means of 1.6e308 and 1.5e308: the third trial is the worst, the fourth the best.
  const auto scheduler = make_median({.max_epochs = 9, .min_epochs = 2, .min_trials = 2}, Goal::kMinimize, {});
  const std::vector<std::pair<double, Decision>> cases = {{1.6e308, Decision::kContinue},
                                                          {1.5e308, Decision::kContinue},
                                                          {1.7e308, Decision::kStop},
                                                          {1.4e308, Decision::kContinue}};
  for (int trial = 0; trial < 4; ++trial) {
    const auto& [value, wanted] = cases[static_cast<std::size_t>(trial)];
    CHECK(scheduler->report(trial, 1, value) == Decision::kContinue);
    CHECK(scheduler->report(trial, 2, value) == wanted);
  }
}

TEST_CASE("impossible options of early stopping are refused") {
  using hfta::Error;
  CHECK_THROWS_AS(make_asha({.max_epochs = 3, .min_epochs = 4}, Goal::kMinimize, {9}), Error);
  CHECK_THROWS_AS(make_asha({.max_epochs = 3, .eta = 1}, Goal::kMinimize, {9}), Error);
  CHECK_THROWS_AS(make_asha({.max_epochs = 3}, Goal::kMinimize, {9, 8}), Error);
  CHECK_THROWS_AS(make_median({.max_epochs = 0}, Goal::kMinimize, {}), Error);
  CHECK_THROWS_AS(make_percentile({.max_epochs = 3, .percentile = 101}, Goal::kMinimize, {}), Error);
  CHECK_THROWS_AS(make_sha({.max_epochs = 3}, Goal::kMinimize, {}), Error);
  CHECK_THROWS_AS(make_sha({.max_epochs = 3}, Goal::kMinimize, {9, 8}), Error);
  CHECK_THROWS_AS(make_bands({.max_epochs = 3, .eta = 1}, Goal::kMinimize, {}), Error);
  const auto one = [](const char* rule, const StoppingOptions& options) {
    return make_stopping({{rule, options}}, 3, Goal::kMinimize, {9});
  };
  CHECK_THROWS_AS(one("threshold", {}), Error);
  CHECK_THROWS_AS(one("threshold", {.lower = 2, .upper = 1}), Error);
  CHECK_THROWS_AS(one("target", {}), Error);
  CHECK_THROWS_AS(make_stopping_beside(make_full(3), {{"median"}}, Goal::kMinimize), Error);
}

TEST_CASE("every rule reads fields that there are") {
  for (const StoppingRule& rule : stopping_rules()) {
    CAPTURE(rule.name);
    CHECK(&stopping_rule(rule.name) == &rule);
    CHECK((rule.make != nullptr) + (rule.judge != nullptr) + (rule.compare != nullptr) == 1);
    for (const std::string_view name : rule.reads) {
      const auto& fields = stopping_fields();
      CHECK(std::any_of(fields.begin(), fields.end(), [&](const StoppingField& field) { return field.name == name; }));
    }
  }
}
