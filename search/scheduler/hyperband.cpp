#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "search/scheduler.hpp"
#include "search/scheduler/bracket_layout.hpp"
#include "search/scheduler/verdicts.hpp"

namespace hfta::search {
namespace {

constexpr int kNever = std::numeric_limits<int>::max();

// What is known of one trial.
struct Record {
  std::map<std::size_t, double> values;  // by rung: the value at that rung's last epoch
  int seen = 0;                          // the latest epoch reported
  int failed_at = kNever;                // the epoch it did not survive
  std::size_t rung = 0;                  // the rung that it was let into
  bool stopped = false;
};

// One bracket of successive halving. Verdicts on a rung are taken when all of it is known.
class Bracket {
 public:
  Bracket(const BracketPosition& place, std::vector<Rung> rungs, trials::Goal goal)
      : rungs_(std::move(rungs)), goal_(goal), pending_(place.size) {}

  Decision report(int trial, int epoch, double value, std::vector<Verdict>& verdicts) {
    Record& record = records_[trial];
    check(trial, epoch, record);
    record.seen = std::max(record.seen, epoch);
    const bool waiting = awaited(record);
    if (!std::isfinite(value)) {
      record.failed_at = std::min(record.failed_at, epoch);
    } else if (const auto rung = rung_at(epoch)) {
      const auto [known, is_new] = record.values.emplace(*rung, value);
      if (!is_new) require_same(trial, epoch, known->second, value);
    }
    const Decision decision =
        decide(record, epoch);  // before the rung is settled: the answer is the same for each of it
    settle_if(waiting && !awaited(record), verdicts);
    return decision;
  }

  void fail(int trial, std::vector<Verdict>& verdicts) {
    Record& record = records_[trial];
    if (record.stopped || completed(record)) return;
    const bool waiting = awaited(record);
    record.failed_at = std::min(record.failed_at, record.seen + 1);
    settle_if(waiting && !awaited(record), verdicts);
  }

  [[nodiscard]] int target(int trial) const {
    const auto found = records_.find(trial);
    return rungs_[found == records_.end() ? 0 : found->second.rung].epochs;
  }

  [[nodiscard]] bool failed(int trial) const { return records_.at(trial).failed_at != kNever; }

 private:
  void check(int trial, int epoch, const Record& record) const {
    const int most = record.stopped ? rungs_[record.rung].epochs : rungs_.back().epochs;
    if (epoch >= 1 && epoch <= most) return;
    throw Error(ErrorKind::kInternal, fmt::format("trial {}: found a report of epoch {}, wanted 1 to {}{}", trial,
                                                  epoch, most, record.stopped ? " (it was stopped there)" : ""));
  }

  [[nodiscard]] std::optional<std::size_t> rung_at(int epoch) const {
    for (std::size_t i = 0; i < rungs_.size(); ++i) {
      if (rungs_[i].epochs == epoch) return i;
    }
    return std::nullopt;
  }

  [[nodiscard]] bool ranks(const Record& record, std::size_t rung) const {
    return record.values.count(rung) != 0 && record.failed_at > rungs_[rung].epochs;
  }

  [[nodiscard]] bool completed(const Record& record) const {
    return record.rung + 1 == rungs_.size() && ranks(record, record.rung);
  }

  // The rung being settled waits for it.
  [[nodiscard]] bool awaited(const Record& record) const {
    return record.rung == current_ && !record.stopped && record.values.count(current_) == 0 &&
           record.failed_at > rungs_[current_].epochs;
  }

  [[nodiscard]] Decision decide(const Record& record, int epoch) const {
    if (record.stopped || record.failed_at != kNever) return Decision::kStop;
    if (completed(record)) return Decision::kComplete;
    if (record.values.count(record.rung) != 0) return Decision::kPause;
    // Beyond its rung: told of ahead of its verdict, as when a study's records are read again.
    return epoch < rungs_[record.rung].epochs ? Decision::kContinue : Decision::kPause;
  }

  void settle_if(bool one_fewer, std::vector<Verdict>& verdicts) {
    if (one_fewer) --pending_;
    while (pending_ == 0 && current_ + 1 < rungs_.size()) settle(verdicts);
  }

  // Ranks the rung's trials, stops all but the best, and counts whom the next rung waits for.
  void settle(std::vector<Verdict>& verdicts) {
    std::vector<int> ranked;
    for (const auto& [trial, record] : records_) {
      if (record.rung == current_ && !record.stopped && ranks(record, current_)) ranked.push_back(trial);
    }
    std::stable_sort(ranked.begin(), ranked.end(), [this](int a, int b) {
      return trials::better(records_.at(a).values.at(current_), records_.at(b).values.at(current_), goal_);
    });
    const auto kept = std::min(ranked.size(), static_cast<std::size_t>(rungs_[current_ + 1].trials));
    for (std::size_t i = 0; i < ranked.size(); ++i) {
      Record& record = records_.at(ranked[i]);
      if (i < kept) {
        record.rung = current_ + 1;
      } else {
        record.stopped = true;
      }
      verdicts.push_back({ranked[i], i < kept ? Decision::kContinue : Decision::kStop});
    }
    ++current_;
    for (const auto& [trial, record] : records_) pending_ += awaited(record) ? 1 : 0;
  }

  std::vector<Rung> rungs_;
  trials::Goal goal_;
  std::map<int, Record> records_;  // by trial
  std::size_t current_ = 0;        // the rung being settled
  int pending_;                    // trials that it waits for; in the first rung, those never seen too
};

class Hyperband final : public Scheduler {
 public:
  Hyperband(const HyperbandOptions& options, trials::Goal goal, std::vector<int> run_caps)
      : layout_(options, std::move(run_caps)), goal_(goal), max_epochs_(options.max_epochs) {}

  [[nodiscard]] std::optional<int> capacity() const override { return layout_.capacity(); }
  [[nodiscard]] int max_epochs() const override { return max_epochs_; }

  [[nodiscard]] int target(int trial) const override {
    const BracketPosition place = layout_.place(trial);
    const auto found = brackets_.find(place.bracket);
    return found == brackets_.end() ? layout_.rungs(place).front().epochs : found->second.target(trial);
  }

  Decision report(int trial, int epoch, double value) override {
    return bracket_of(trial).report(trial, epoch, value, verdicts_);
  }

  void fail(int trial) override { bracket_of(trial).fail(trial, verdicts_); }

  std::vector<Verdict> take_verdicts() override {
    return take_due(verdicts_, [this](int trial) { return bracket_of(trial).failed(trial); });
  }

  [[nodiscard]] std::int64_t planned_epochs(int first, int trials) const override {
    return layout_.cost(std::int64_t{first} + trials) - layout_.cost(first);
  }

 private:
  Bracket& bracket_of(int trial) {
    const BracketPosition place = layout_.place(trial);
    const auto found = brackets_.find(place.bracket);
    if (found != brackets_.end()) return found->second;
    return brackets_.emplace(place.bracket, Bracket(place, layout_.rungs(place), goal_)).first->second;
  }

  BracketLayout layout_;
  trials::Goal goal_;
  int max_epochs_;
  std::map<std::int64_t, Bracket> brackets_;
  std::vector<Verdict> verdicts_;
};

}  // namespace

std::unique_ptr<Scheduler> make_hyperband(const HyperbandOptions& options, trials::Goal goal,
                                          std::vector<int> run_caps) {
  return std::make_unique<Hyperband>(options, goal, std::move(run_caps));
}

}  // namespace hfta::search
