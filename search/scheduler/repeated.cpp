#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "search/repetition.hpp"
#include "search/scheduler/configuration_judge.hpp"
#include "search/scheduler/verdicts.hpp"

namespace hfta::search {
namespace {

constexpr int kNever = std::numeric_limits<int>::max();
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

int times(int count, int factor) {
  const std::int64_t product = std::int64_t{count} * factor;
  return static_cast<int>(std::min<std::int64_t>(product, std::numeric_limits<int>::max()));
}

/// Adapts a scheduler of single trials to a judge of configurations by their one value.
class ByValue final : public ConfigurationJudge {
 public:
  ByValue(std::unique_ptr<Scheduler> judge, trials::Rank rank, trials::Goal goal)
      : judge_(std::move(judge)), rank_(rank), goal_(goal) {}

  void enter(int configuration, const trials::Params& params) override { judge_->enter(configuration, params); }
  [[nodiscard]] std::optional<int> capacity() const override { return judge_->capacity(); }
  [[nodiscard]] int target(int configuration) const override { return judge_->target(configuration); }
  [[nodiscard]] int max_epochs() const override { return judge_->max_epochs(); }
  [[nodiscard]] std::int64_t planned_epochs(int first, int configurations) const override {
    return judge_->planned_epochs(first, configurations);
  }
  Decision judge(int configuration, int epoch, const std::vector<double>& values) override {
    return judge_->report(configuration, epoch, trials::value_of(values, rank_, goal_));
  }
  std::vector<Verdict> take_verdicts() override { return judge_->take_verdicts(); }

 private:
  std::unique_ptr<Scheduler> judge_;
  trials::Rank rank_;
  trials::Goal goal_;
};

// The reports on one repetition, and its state.
struct Run {
  std::vector<double> values;  // by epoch; NaN: not reported
  int failed_at = kNever;      // the epoch that it did not survive
  int waits_at = 0;            // the epoch that it was told to pause after; 0: none
};

// The repetitions of one configuration.
struct Block {
  std::vector<Run> runs;
  int judged = 0;  // epochs that the judge has seen
  Decision decision = Decision::kContinue;
};

// A configuration is judged after an epoch when each of its repetitions has reported it or has failed by then. Since
// none trains on before, all have had equally many epochs when they are stopped, whenever their reports came in.
class Repeated final : public Scheduler {
 public:
  Repeated(std::unique_ptr<ConfigurationJudge> judge, const trials::Repetitions& repetitions)
      : judge_(std::move(judge)), repetitions_(repetitions) {}

  void enter(int trial, const trials::Params& params) override {
    if (repetitions_.index_of(trial) != 0) return;
    judge_->enter(repetitions_.configuration_of(trial), repetitions_.configuration_of(params));
  }
  [[nodiscard]] std::optional<int> capacity() const override {
    const std::optional<int> configurations = judge_->capacity();
    return configurations ? std::optional(times(*configurations, repetitions_.count())) : std::nullopt;
  }
  [[nodiscard]] int target(int trial) const override { return judge_->target(repetitions_.configuration_of(trial)); }
  [[nodiscard]] int max_epochs() const override { return judge_->max_epochs(); }
  [[nodiscard]] std::int64_t planned_epochs(int first, int trials) const override {
    return repetitions_.count() *
           judge_->planned_epochs(repetitions_.configuration_of(first), repetitions_.configurations_in(trials));
  }

  Decision report(int trial, int epoch, double value) override {
    require_report(trial, epoch, max_epochs());
    Block& block = block_of(trial);
    Run& run = run_of(trial, block);
    const auto place = static_cast<std::size_t>(epoch - 1);
    if (run.values.size() <= place) run.values.resize(place + 1, kNone);
    if (!std::isfinite(value)) {
      run.failed_at = std::min(run.failed_at, epoch);
    } else if (std::isnan(run.values[place])) {
      run.values[place] = value;
    } else {
      require_same(trial, epoch, run.values[place], value);
    }
    run.waits_at = 0;
    settle(repetitions_.configuration_of(trial), block);
    return answer(block, run, epoch);
  }

  void fail(int trial) override {
    require_trial(trial);
    Block& block = block_of(trial);
    Run& run = run_of(trial, block);
    const int seen = static_cast<int>(run.values.size());
    if (block.decision == Decision::kStop || seen == max_epochs()) return;
    run.failed_at = std::min(run.failed_at, seen + 1);
    run.waits_at = 0;
    settle(repetitions_.configuration_of(trial), block);
  }

  // The judge is asked once all reports of a round are in: what it said between two of them might be of a repetition
  // that the second one has completed.
  std::vector<Verdict> take_verdicts() override {
    for (const Verdict& verdict : judge_->take_verdicts()) {
      if (verdict.copy) throw Error(ErrorKind::kInternal, "repetitions: found a copy of a trial, wanted none");
      Block& block = blocks_.at(verdict.trial);
      block.decision = verdict.decision;
      verdict.decision == Decision::kPause ? hold(verdict.trial, block) : release(verdict.trial, block);
    }
    return take_due(verdicts_, [this](int trial) {
      const Block& block = blocks_.at(repetitions_.configuration_of(trial));
      return block.runs[static_cast<std::size_t>(repetitions_.index_of(trial))].failed_at != kNever;
    });
  }

 private:
  [[nodiscard]] Block& block_of(int trial) {
    Block& block = blocks_[repetitions_.configuration_of(trial)];
    block.runs.resize(static_cast<std::size_t>(repetitions_.count()));
    return block;
  }
  [[nodiscard]] Run& run_of(int trial, Block& block) const {
    return block.runs[static_cast<std::size_t>(repetitions_.index_of(trial))];
  }

  [[nodiscard]] static std::optional<double> value_at(const Run& run, int epoch) {
    if (run.failed_at <= epoch) return kNone;
    const auto place = static_cast<std::size_t>(epoch - 1);
    if (run.values.size() <= place || std::isnan(run.values[place])) return std::nullopt;
    return run.values[place];
  }

  [[nodiscard]] static std::optional<std::vector<double>> values_at(const Block& block, int epoch) {
    std::vector<double> values;
    for (const Run& run : block.runs) {
      const std::optional<double> value = value_at(run, epoch);
      if (!value) return std::nullopt;
      values.push_back(*value);
    }
    return values;
  }

  [[nodiscard]] Decision answer(const Block& block, Run& run, int epoch) const {
    if (run.failed_at != kNever) return Decision::kStop;
    if (epoch == max_epochs()) return Decision::kComplete;
    if (block.judged >= epoch && block.decision == Decision::kStop) return Decision::kStop;
    const bool goes_on = block.judged > epoch || block.decision == Decision::kContinue;
    if (block.judged >= epoch && goes_on) return Decision::kContinue;
    run.waits_at = epoch;
    return Decision::kPause;
  }

  void settle(int configuration, Block& block) {
    while (block.decision != Decision::kStop && block.judged < max_epochs()) {
      const std::optional<std::vector<double>> values = values_at(block, block.judged + 1);
      if (!values) break;
      block.decision = judge_->judge(configuration, ++block.judged, *values);
    }
    release(configuration, block);
  }

  // Sends the verdict to the repetitions that wait after an epoch that has been judged.
  void release(int configuration, Block& block) {
    if (block.decision != Decision::kContinue && block.decision != Decision::kStop) return;
    for (std::size_t i = 0; i < block.runs.size(); ++i) {
      Run& run = block.runs[i];
      if (run.waits_at == 0 || run.waits_at > block.judged) continue;
      run.waits_at = 0;
      verdicts_.push_back({configuration * repetitions_.count() + static_cast<int>(i), block.decision});
    }
  }

  // Repetitions that were told to go on, and have not, wait again.
  void hold(int configuration, Block& block) {
    for (std::size_t i = 0; i < block.runs.size(); ++i) {
      Run& run = block.runs[i];
      if (run.failed_at != kNever || run.waits_at != 0 || static_cast<int>(run.values.size()) != block.judged) continue;
      run.waits_at = block.judged;
      verdicts_.push_back({configuration * repetitions_.count() + static_cast<int>(i), Decision::kPause});
    }
  }

  std::unique_ptr<ConfigurationJudge> judge_;
  trials::Repetitions repetitions_;
  std::map<int, Block> blocks_;  // keyed by configuration
  std::vector<Verdict> verdicts_;
};

}  // namespace

std::unique_ptr<Scheduler> judged_by(std::unique_ptr<ConfigurationJudge> judge,
                                     const trials::Repetitions& repetitions) {
  return std::make_unique<Repeated>(std::move(judge), repetitions);
}

std::unique_ptr<Scheduler> make_repeated(std::unique_ptr<Scheduler> judge, const trials::Repetitions& repetitions,
                                         trials::Goal goal) {
  return judged_by(std::make_unique<ByValue>(std::move(judge), repetitions.rank, goal), repetitions);
}

}  // namespace hfta::search
