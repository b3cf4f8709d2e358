#include "search/scheduler/in_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include "base/error.hpp"
#include "base/mean.hpp"
#include "search/scheduler/verdicts.hpp"

namespace hfta::search {
namespace {

constexpr int kNever = std::numeric_limits<int>::max();

// The reports on one trial, and its state.
struct Record {
  std::vector<double> values;  // by epoch; NaN: not reported
  int failed_at = kNever;      // the epoch that it did not survive
  int stopped_at = kNever;
  int waits_at = 0;  // the latest epoch that it was told to pause after; 0: none
  // Sums up to the latest epoch that it was judged after:
  int judged = 0;
  double beyond = 0, best = 0;  // beyond: sum of (value - first value), exact for equal values

  [[nodiscard]] double number(Number which) const {
    if (which == Number::kBest) return best;
    return which == Number::kMean ? mean() : values[static_cast<std::size_t>(judged - 1)];
  }
  [[nodiscard]] double mean() const {
    return std::isfinite(beyond) ? values.front() + beyond / judged
                                 : mean_of(std::span(values).first(static_cast<std::size_t>(judged)));
  }
};

class InOrder final : public Scheduler {
 public:
  InOrder(InOrderRule rule, trials::Goal goal) : rule_(std::move(rule)), goal_(goal) {
    if (rule_.max_epochs < 1) {
      throw Error(ErrorKind::kConfig, fmt::format("epochs: found {}, wanted at least 1", rule_.max_epochs));
    }
    queues_.resize(rule_.epochs.size());
  }

  [[nodiscard]] std::optional<int> capacity() const override { return std::nullopt; }
  [[nodiscard]] int target(int) const override { return rule_.max_epochs; }
  [[nodiscard]] int max_epochs() const override { return rule_.max_epochs; }
  [[nodiscard]] std::int64_t planned_epochs(int, int trials) const override {
    return std::int64_t{rule_.max_epochs} * trials;
  }

  Decision report(int trial, int epoch, double value) override {
    require_report(trial, epoch, rule_.max_epochs);
    Record& record = records_[trial];
    const auto place = static_cast<std::size_t>(epoch - 1);
    if (record.values.size() <= place) record.values.resize(place + 1, std::nan(""));
    if (!std::isfinite(value)) {
      record.failed_at = std::min(record.failed_at, epoch);
    } else if (std::isnan(record.values[place])) {
      record.values[place] = value;
    } else {
      require_same(trial, epoch, record.values[place], value);
    }
    settle();
    return answer(trial, epoch, record);
  }

  void fail(int trial) override {
    require_trial(trial);
    Record& record = records_[trial];
    const int seen = static_cast<int>(record.values.size());
    if (record.stopped_at != kNever || seen == rule_.max_epochs) return;
    record.failed_at = std::min(record.failed_at, seen + 1);
    settle();
  }

  std::vector<Verdict> take_verdicts() override {
    return take_due(verdicts_, [this](int trial) { return records_.at(trial).failed_at != kNever; });
  }

 private:
  struct Queue {
    int next = 0;                // the trial to be judged next
    std::vector<double> others;  // numbers of those judged, ascending
  };

  Decision answer(int trial, int epoch, Record& record) {
    if (record.stopped_at != kNever || record.failed_at != kNever) return Decision::kStop;
    if (epoch == rule_.max_epochs) return Decision::kComplete;
    const auto judged_at = std::lower_bound(rule_.epochs.begin(), rule_.epochs.end(), epoch);
    if (judged_at == rule_.epochs.end() || *judged_at != epoch) return Decision::kContinue;
    if (queues_[static_cast<std::size_t>(judged_at - rule_.epochs.begin())].next > trial) return Decision::kContinue;
    record.waits_at = std::max(record.waits_at, epoch);  // reports may come in any order
    return Decision::kPause;
  }

  // Judges all that can be judged. Epochs ascend, since a later one has to know what was stopped.
  void settle() {
    for (std::size_t i = 0; i < queues_.size(); ++i) {
      const int epoch = rule_.epochs[i];
      Queue& line = queues_[i];
      for (auto at = records_.find(line.next); at != records_.end() && at->first == line.next; ++at, ++line.next) {
        Record& record = at->second;
        if (i > 0 && queues_[i - 1].next <= at->first) break;
        if (record.stopped_at < epoch || record.failed_at <= epoch) continue;
        if (!take_in(record, epoch)) break;
        judge(at->first, record, epoch, line);
      }
    }
  }

  // Brings the record's mean and best up to that epoch; false where a report is missing.
  [[nodiscard]] bool take_in(Record& record, int epoch) const {
    if (static_cast<int>(record.values.size()) < epoch) return false;
    for (; record.judged < epoch; ++record.judged) {
      const double value = record.values[static_cast<std::size_t>(record.judged)];
      if (std::isnan(value)) return false;
      record.beyond += value - record.values.front();
      if (record.judged == 0 || trials::better(value, record.best, goal_)) record.best = value;
    }
    return true;
  }

  void judge(int trial, Record& record, int epoch, Queue& line) {
    if (rule_.stops(record.number(rule_.own), line.others)) record.stopped_at = epoch;
    const double number = record.number(rule_.others);
    line.others.insert(std::upper_bound(line.others.begin(), line.others.end(), number), number);
    if (record.waits_at != epoch) return;
    record.waits_at = 0;
    verdicts_.push_back({trial, record.stopped_at == epoch ? Decision::kStop : Decision::kContinue});
  }

  InOrderRule rule_;
  trials::Goal goal_;
  std::map<int, Record> records_;  // keyed by trial
  std::vector<Queue> queues_;      // one for each of rule_.epochs
  std::vector<Verdict> verdicts_;
};

}  // namespace

std::unique_ptr<Scheduler> make_in_order(InOrderRule rule, trials::Goal goal) {
  return std::make_unique<InOrder>(std::move(rule), goal);
}

}  // namespace hfta::search
