// Several rules of early stopping that hold together.
//
// Rules that judge a trial by its own values speak first. A trial that one of them stops is reported to the others as
// one that diverged at that epoch; one that they complete, or that another rule stops, as one that failed thereafter.
// So what the others decide never depends on when they are told.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "search/scheduler/verdicts.hpp"
#include "search/stopping.hpp"

namespace hfta::search {
namespace {

// One trial as one rule has seen it; reports may come in any order.
class OwnRun {
 public:
  void enter(int epoch, double value) {
    if (epoch > now_.epoch) values_.emplace(epoch, value);
  }

  // Judges all epochs up to the first that is not known.
  [[nodiscard]] Decision judge(const Stopping& stopping, trials::Goal goal) {
    const StoppingRule& rule = stopping_rule(stopping.rule);
    for (auto next = values_.begin(); next != values_.end() && next->first == now_.epoch + 1;) {
      now_.epoch = next->first;
      now_.value = next->second;
      const double gain = goal == trials::Goal::kMinimize ? best_ - now_.value : now_.value - best_;
      if (now_.epoch == first_ || gain > stopping.options.min_delta) {
        best_ = now_.value;
        now_.best_at = now_.epoch;
      }
      next = values_.erase(next);
      const Decision decision = rule.judge(now_, stopping.options, goal);
      if (decision != Decision::kContinue) return decision;
    }
    return Decision::kContinue;
  }

  // The trial goes on from a copy of another: what it was before does not count.
  void restart() { first_ = now_.epoch + 1; }

 private:
  std::map<int, double> values_;  // by epoch; only epochs not judged yet
  OwnValues now_;
  int first_ = 1;
  double best_ = 0;
};

struct Record {
  std::vector<OwnRun> own;
  std::vector<Decision> said;  // the last decision of each scheduler
  std::optional<Decision> end;
  int cut_at = std::numeric_limits<int>::max();  // a rule stopped it at this epoch by its value
  bool waits = false;
  std::optional<CopyOf> copy;  // the copy of a verdict that is due
};

using Parts = std::vector<std::unique_ptr<Scheduler>>;

template <typename Number>
auto least(const Parts& parts, const Number& number) {
  auto found = number(*parts.front());
  for (const auto& part : parts) found = std::min(found, number(*part));
  return found;
}

class Combined final : public Scheduler {
 public:
  Combined(Parts parts, std::vector<Stopping> own, trials::Goal goal)
      : parts_(std::move(parts)), own_(std::move(own)), goal_(goal) {}

  void enter(int trial, const trials::Params& params) override {
    for (const auto& part : parts_) part->enter(trial, params);
  }
  [[nodiscard]] std::optional<int> capacity() const override {
    std::optional<int> least;
    for (const auto& part : parts_) {
      const std::optional<int> one = part->capacity();
      if (one) least = least ? std::min(*least, *one) : one;
    }
    return least;
  }
  [[nodiscard]] int target(int trial) const override {
    return least(parts_, [=](const Scheduler& part) { return part.target(trial); });
  }
  [[nodiscard]] int max_epochs() const override {
    return least(parts_, [](const Scheduler& part) { return part.max_epochs(); });
  }
  [[nodiscard]] std::int64_t planned_epochs(int first, int trials) const override {
    return least(parts_, [=](const Scheduler& part) { return part.planned_epochs(first, trials); });
  }

  Decision report(int trial, int epoch, double value) override {
    require_report(trial, epoch, max_epochs());
    Record& record = record_of(trial);
    const Decision own = std::isfinite(value) ? judge(record, epoch, value) : Decision::kContinue;
    if (own == Decision::kStop) record.cut_at = std::min(record.cut_at, epoch);
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      record.said[i] = parts_[i]->report(trial, epoch, epoch >= record.cut_at ? std::nan("") : value);
    }
    if (record.end) return *record.end;
    if (!std::isfinite(value)) {
      record.end = Decision::kStop;
    } else if (own != Decision::kContinue) {
      end(trial, record, own);
    } else if (const Decision decision = of_parts(record); decision == Decision::kStop) {
      end(trial, record, decision);
    } else {
      record.waits = decision == Decision::kPause;
      return decision;
    }
    return *record.end;
  }

  void fail(int trial) override {
    require_trial(trial);
    Record& record = record_of(trial);
    if (record.end) return;
    end(trial, record, Decision::kStop);
  }

  std::vector<Verdict> take_verdicts() override {
    std::set<int> heard;
    while (hear(heard)) {
    }
    std::vector<Verdict> verdicts;
    for (const int trial : heard) {
      Record& record = records_.at(trial);
      const bool waits = !record.end && of_parts(record) == Decision::kPause;
      if (std::exchange(record.waits, waits) == waits) continue;
      if (waits) {
        verdicts.push_back({trial, Decision::kPause});
        continue;
      }
      verdicts.push_back({trial, record.end ? Decision::kStop : Decision::kContinue, std::exchange(record.copy, {})});
    }
    return verdicts;
  }

 private:
  Record& record_of(int trial) {
    Record& record = records_[trial];
    record.own.resize(own_.size());
    record.said.resize(parts_.size(), Decision::kContinue);
    return record;
  }

  // kStop, which depends on this epoch alone, precedes kComplete, which depends on all epochs up to it.
  [[nodiscard]] Decision judge(Record& record, int epoch, double value) const {
    Decision all = Decision::kContinue;
    for (std::size_t i = 0; i < own_.size(); ++i) {
      const StoppingRule& rule = stopping_rule(own_[i].rule);
      if (rule.judge({epoch, value, epoch}, own_[i].options, goal_) == Decision::kStop) return Decision::kStop;
      record.own[i].enter(epoch, value);
      if (record.own[i].judge(own_[i], goal_) == Decision::kComplete) all = Decision::kComplete;
    }
    return all;
  }

  [[nodiscard]] static Decision of_parts(const Record& record) {
    for (const Decision one : {Decision::kStop, Decision::kPause, Decision::kContinue}) {
      if (std::count(record.said.begin(), record.said.end(), one) > 0) return one;
    }
    return Decision::kComplete;
  }

  void end(int trial, Record& record, Decision decision) {
    record.end = decision;
    for (const auto& part : parts_) part->fail(trial);
  }

  // Takes the parts' verdicts; ending a trial may bring further ones. Returns false if there were none.
  [[nodiscard]] bool hear(std::set<int>& heard) {
    bool any = false;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      for (Verdict& verdict : parts_[i]->take_verdicts()) {
        Record& record = record_of(verdict.trial);
        if (record.end) continue;
        any = true;
        heard.insert(verdict.trial);
        record.said[i] = verdict.decision;
        if (verdict.decision == Decision::kStop) end(verdict.trial, record, Decision::kStop);
        if (!verdict.copy) continue;
        record.copy = std::move(verdict.copy);
        for (OwnRun& run : record.own) run.restart();
      }
    }
    return any;
  }

  Parts parts_;
  std::vector<Stopping> own_;
  trials::Goal goal_;
  std::map<int, Record> records_;  // keyed by trial
};

void check(const Stopping& stopping) {
  const StoppingOptions& options = stopping.options;
  const StoppingRule& rule = stopping_rule(stopping.rule);
  if (reads(rule, "lower") && reads(rule, "upper") &&
      (!(options.lower < options.upper) || (std::isinf(options.lower) && std::isinf(options.upper)))) {
    throw Error(ErrorKind::kConfig,
                fmt::format("{}: found lower {} and upper {}, wanted one of them, or the lower below the upper",
                            stopping.rule, options.lower, options.upper));
  }
  if (reads(rule, "value") && !(options.value && std::isfinite(*options.value))) {
    throw Error(ErrorKind::kConfig, fmt::format("{}: found no value, wanted a number", stopping.rule));
  }
}

}  // namespace

std::unique_ptr<Scheduler> make_stopping(const std::vector<Stopping>& rules, int max_epochs, trials::Goal goal,
                                         const std::vector<int>& run_caps) {
  Parts parts;
  std::vector<Stopping> own;
  for (Stopping stopping : rules) {
    stopping.options.max_epochs = max_epochs;
    check(stopping);
    const StoppingRule& rule = stopping_rule(stopping.rule);
    if (rule.make != nullptr) {
      parts.push_back(rule.make(stopping.options, goal, run_caps));
    } else if (rule.judge != nullptr) {
      own.push_back(stopping);
    } else {
      throw Error(ErrorKind::kConfig, fmt::format("early_stopping: found {}, which only compares repetitions of a "
                                                  "configuration",
                                                  stopping.rule));
    }
  }
  if (parts.empty()) parts.push_back(make_full(max_epochs));
  if (own.empty() && parts.size() == 1) return std::move(parts.front());
  return std::make_unique<Combined>(std::move(parts), std::move(own), goal);
}

std::unique_ptr<Scheduler> make_stopping_beside(std::unique_ptr<Scheduler> method, const std::vector<Stopping>& rules,
                                                trials::Goal goal) {
  if (rules.empty()) return method;
  for (const Stopping& stopping : rules) {
    check(stopping);
    if (stopping_rule(stopping.rule).judge != nullptr) continue;
    throw Error(ErrorKind::kConfig, fmt::format("early_stopping: found {} beside a method that stops trials itself, "
                                                "wanted a rule that judges a trial by its own values",
                                                stopping.rule));
  }
  Parts parts;
  parts.push_back(std::move(method));
  return std::make_unique<Combined>(std::move(parts), rules, goal);
}

}  // namespace hfta::search
