#pragma once
// Schedulers under a driver of chance: curves, and slots that train whichever trial comes next.

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include "base/random.hpp"
#include "search/scheduler.hpp"
#include "trials/trial.hpp"

namespace hfta::search::testing {

using trials::State;

// The metric of a trial after an epoch.
using Curve = std::function<double(int trial, int epoch)>;

struct Outcome {
  State state = State::kRunning;
  int epochs = 0;
  bool operator==(const Outcome&) const = default;
};

// Curves that cross one another, so that who survives differs from rung to rung.
inline double crossing(int trial, int epoch) {
  hfta::CountedRandom random(77, hfta::Stream::kSimulation, static_cast<std::uint64_t>(trial));
  const double final = random.uniform(), start = random.uniform(), rate = random.uniform();
  return final + start * std::exp(-rate * epoch) * 3;
}

// Few distinct values, so that many trials tie.
inline double tied(int trial, int epoch) { return (trial * 7 + epoch) % 3; }

// Some trials diverge, at epochs on, before and after rungs, to any of the values that are not finite.
inline double diverging(int trial, int epoch) {
  const double inf = std::numeric_limits<double>::infinity();
  const int at = trial * 31 % 40 + 1;
  if (trial % 3 == 0 && epoch >= at) return trial % 2 == 0 ? std::nan("") : (trial % 4 == 1 ? inf : -inf);
  return crossing(trial, epoch);
}

inline double doomed(int, int) { return std::nan(""); }

struct Report {
  int trial, epoch;
  double value;
};

// A driver with `width` slots that trains whichever slot chance names next. `log` takes every report.
inline std::vector<Outcome> drive(Scheduler& scheduler, int capacity, const Curve& curve, int width, unsigned seed,
                                  std::vector<Report>* log = nullptr) {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(capacity));
  std::vector<int> running, ready;  // in a slot; promoted and waiting for one
  std::set<int> paused;
  int drawn = 0;
  std::mt19937 chance(seed);
  for (;;) {
    while (static_cast<int>(running.size()) < width && (!ready.empty() || drawn < capacity)) {
      const bool promote = !ready.empty() && (drawn == capacity || chance() % 2 == 0);
      running.push_back(promote ? ready.back() : drawn++);
      if (promote) ready.pop_back();
    }
    if (running.empty()) break;
    const std::size_t slot = chance() % running.size();
    const int trial = running[slot];
    Outcome& outcome = outcomes[static_cast<std::size_t>(trial)];
    REQUIRE(outcome.epochs < scheduler.target(trial));
    const double value = curve(trial, ++outcome.epochs);
    if (log != nullptr) log->push_back({trial, outcome.epochs, value});
    const Decision decision = scheduler.report(trial, outcome.epochs, value);
    if (decision == Decision::kStop) outcome.state = std::isfinite(value) ? State::kPruned : State::kFail;
    if (decision == Decision::kComplete) outcome.state = State::kComplete;
    if (decision == Decision::kPause) paused.insert(trial);
    if (decision != Decision::kContinue) running.erase(running.begin() + static_cast<std::ptrdiff_t>(slot));
    int last = -1;
    for (const Verdict& verdict : scheduler.take_verdicts()) {
      REQUIRE(verdict.trial > last);  // in order, one each
      last = verdict.trial;
      REQUIRE(paused.erase(verdict.trial) == 1);
      if (verdict.decision == Decision::kContinue) {
        ready.push_back(verdict.trial);
      } else {
        REQUIRE(verdict.decision == Decision::kStop);
        outcomes[static_cast<std::size_t>(verdict.trial)].state = State::kPruned;
      }
    }
  }
  REQUIRE(paused.empty());  // everybody got a verdict
  return outcomes;
}

}  // namespace hfta::search::testing
