#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "base/random.hpp"
#include "search/explore.hpp"
#include "search/scheduler.hpp"
#include "search/scheduler/verdicts.hpp"
#include "search/space.hpp"

namespace hfta::search {
namespace {

constexpr int kNever = std::numeric_limits<int>::max();

// The reports on one trial, and its state.
struct Record {
  trials::Params params;         // parameters that it is trained with
  std::map<int, double> values;  // by epoch, only where it is judged
  int seen = 0;                  // the latest epoch reported
  int failed_at = kNever;        // the epoch that it did not survive
  bool waits = false;            // it was told to pause
};

// Trials that are judged together.
struct Population {
  int first = 0, end = 0;
  int judged = 0;  // the latest epoch that it was judged after; 0: none
};

class Pbt final : public Scheduler {
 public:
  Pbt(const PbtOptions& options, trials::Goal goal, trials::Space space, std::set<std::string> fixed,
      std::uint64_t seed, std::vector<int> run_caps)
      : options_(options), goal_(goal), space_(std::move(space)), fixed_(std::move(fixed)), seed_(seed) {
    if (run_caps.empty()) run_caps.push_back(options_.population);
    int first = 0;
    for (const int cap : run_caps) {
      for (; first < cap; first = populations_.back().end) {
        populations_.push_back({first, std::min(cap, first + options_.population)});
      }
    }
  }

  void enter(int trial, const trials::Params& params) override { records_[trial].params = params; }
  [[nodiscard]] std::optional<int> capacity() const override { return populations_.back().end; }
  [[nodiscard]] int max_epochs() const override { return options_.max_epochs; }
  [[nodiscard]] std::int64_t planned_epochs(int first, int trials) const override {
    return std::int64_t{std::clamp(populations_.back().end - first, 0, trials)} * options_.max_epochs;
  }
  [[nodiscard]] int target(int trial) const override { return next_judgement(populations_[population_of(trial)]); }

  [[nodiscard]] Decision report(int trial, int epoch, double value) override {
    Record& record = known(trial);
    require_report(trial, epoch, options_.max_epochs);
    record.seen = std::max(record.seen, epoch);
    if (!std::isfinite(value)) {
      record.failed_at = std::min(record.failed_at, epoch);
    } else if (is_judgement(epoch)) {
      const auto [found, is_new] = record.values.emplace(epoch, value);
      if (!is_new) require_same(trial, epoch, found->second, value);
    }
    Population& all = populations_[population_of(trial)];
    const Decision decision = answer(record, epoch, all);
    record.waits = decision == Decision::kPause;
    settle(all);
    return decision;
  }

  void fail(int trial) override {
    Record& record = known(trial);
    if (record.seen == options_.max_epochs) return;
    record.failed_at = std::min(record.failed_at, record.seen + 1);
    settle(populations_[population_of(trial)]);
  }

  [[nodiscard]] std::vector<Verdict> take_verdicts() override {
    return take_due(verdicts_, [this](int trial) { return records_.at(trial).failed_at != kNever; });
  }

 private:
  [[nodiscard]] bool is_judgement(int epoch) const {
    return epoch % options_.interval == 0 && epoch < options_.max_epochs;
  }
  [[nodiscard]] int next_judgement(const Population& all) const {
    return std::min(options_.max_epochs, all.judged + options_.interval);
  }

  [[nodiscard]] Record& known(int trial) {
    if (trial < 0 || trial >= populations_.back().end) {
      throw Error(ErrorKind::kInternal,
                  fmt::format("trial {}: found a report of it, wanted one of {}", trial, populations_.back().end));
    }
    return records_[trial];
  }

  // The population of a trial; the last one for a trial beyond all.
  [[nodiscard]] std::size_t population_of(int trial) const {
    const auto found = std::find_if(populations_.begin(), populations_.end() - 1,
                                    [&](const Population& all) { return trial < all.end; });
    return static_cast<std::size_t>(found - populations_.begin());
  }

  [[nodiscard]] Decision answer(const Record& record, int epoch, const Population& all) const {
    if (record.failed_at != kNever) return Decision::kStop;
    if (epoch == options_.max_epochs) return Decision::kComplete;
    return epoch > all.judged && is_judgement(epoch) ? Decision::kPause : Decision::kContinue;
  }

  // Judges the population after each epoch of judgement that all of it has reached.
  void settle(Population& all) {
    for (int epoch = next_judgement(all); epoch < options_.max_epochs; epoch = next_judgement(all)) {
      std::vector<std::pair<double, int>> ranks;  // best first
      for (int trial = all.first; trial < all.end; ++trial) {
        const auto found = records_.find(trial);
        if (found == records_.end()) return;
        if (found->second.failed_at <= epoch) continue;
        const auto value = found->second.values.find(epoch);
        if (value == found->second.values.end()) return;
        ranks.emplace_back(goal_ == trials::Goal::kMinimize ? value->second : -value->second, trial);
      }
      std::sort(ranks.begin(), ranks.end());
      judge(ranks, epoch);
      all.judged = epoch;
    }
  }

  void judge(const std::vector<std::pair<double, int>>& ranks, int epoch) {
    const std::size_t some = ranks.size() * static_cast<std::size_t>(options_.truncation) / 100;
    std::map<int, CopyOf> copies;  // by trial; all are made before one is given
    for (std::size_t place = ranks.size() - some; place < ranks.size(); ++place) {
      const int trial = ranks[place].second;
      CountedRandom random(seed_, Stream::kPbt, static_cast<std::uint64_t>(trial), static_cast<std::uint64_t>(epoch));
      const int source = ranks[random.below(some)].second;
      copies[trial] = {source, explored(records_.at(source).params, random)};
    }
    for (const auto& [rank, trial] : ranks) {
      Record& record = records_.at(trial);
      const auto copy = copies.find(trial);
      if (copy != copies.end()) record.params = copy->second.params;
      if (!std::exchange(record.waits, false)) continue;
      verdicts_.push_back(
          {trial, Decision::kContinue, copy == copies.end() ? std::nullopt : std::optional(copy->second)});
    }
  }

  [[nodiscard]] trials::Params explored(trials::Params params, CountedRandom& random) const {
    for (auto& [name, value] : params) {
      const auto parameter =
          std::find_if(space_.begin(), space_.end(),
                       [&, wanted = name](const trials::Parameter& one) { return one.name == wanted; });
      if (parameter == space_.end() || fixed_.contains(name)) continue;
      const bool anew = random.below(100) < static_cast<std::uint64_t>(options_.resample);
      value = anew ? sample(parameter->distribution, random)
                   : moved(parameter->distribution, value, /*up=*/random.below(2) == 1);
    }
    return params;
  }

  PbtOptions options_;
  trials::Goal goal_;
  trials::Space space_;
  std::set<std::string> fixed_;
  std::uint64_t seed_;
  std::vector<Population> populations_;  // never empty
  std::map<int, Record> records_;        // keyed by trial
  std::vector<Verdict> verdicts_;
};

}  // namespace

std::unique_ptr<Scheduler> make_pbt(const PbtOptions& options, trials::Goal goal, trials::Space space,
                                    std::set<std::string> fixed, std::uint64_t seed, std::vector<int> run_caps) {
  const bool possible = options.population >= 1 && options.interval >= 1 && options.max_epochs >= 1 &&
                        options.truncation >= 0 && options.truncation <= 50 && options.resample >= 0 &&
                        options.resample <= 100 && std::is_sorted(run_caps.begin(), run_caps.end()) &&
                        (run_caps.empty() || run_caps.front() >= 1);
  if (!possible) {
    throw Error(
        ErrorKind::kConfig,
        fmt::format("pbt: found population {}, interval {}, max_epochs {}, truncation {} and resample {}, wanted "
                    "the first three from 1, truncation from 0 to 50, resample from 0 to 100",
                    options.population, options.interval, options.max_epochs, options.truncation, options.resample));
  }
  return std::make_unique<Pbt>(options, goal, std::move(space), std::move(fixed), seed, std::move(run_caps));
}

}  // namespace hfta::search
