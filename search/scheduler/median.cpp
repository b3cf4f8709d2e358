#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "search/scheduler/verdicts.hpp"
#include "search/stopping.hpp"

namespace hfta::search {
namespace {

constexpr int kNever = std::numeric_limits<int>::max();

// What is known of one trial.
struct Record {
  std::vector<double> values;  // by epoch; NaN: not reported
  int failed_at = kNever;      // the epoch that it did not survive
  int stopped_at = kNever;
  int waits_at = 0;  // the epoch that it was told to pause after; 0: none
  // Up to the latest epoch that it was judged after:
  int judged = 0;
  double sum = 0, best = 0;
};

// After an epoch, trials are judged in the order of their draws, each as soon as all before it have been judged there
// or have ended sooner.
class Median final : public Scheduler {
 public:
  Median(const StoppingOptions& options, trials::Goal goal) : options_(options), goal_(goal) {
    if (options.max_epochs < 1) {
      throw Error(ErrorKind::kConfig, fmt::format("epochs: found {}, wanted at least 1", options.max_epochs));
    }
    queues_.resize(static_cast<std::size_t>(std::max(0, options.max_epochs - options.min_epochs)));
  }

  [[nodiscard]] std::optional<int> capacity() const override { return std::nullopt; }
  [[nodiscard]] int target(int) const override { return options_.max_epochs; }
  [[nodiscard]] int max_epochs() const override { return options_.max_epochs; }
  [[nodiscard]] std::int64_t planned_epochs(int, int trials) const override {
    return std::int64_t{options_.max_epochs} * trials;
  }

  Decision report(int trial, int epoch, double value) override {
    if (epoch < 1 || epoch > options_.max_epochs) {
      throw Error(ErrorKind::kInternal, fmt::format("trial {}: found a report of epoch {}, wanted 1 to {}", trial,
                                                    epoch, options_.max_epochs));
    }
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
    Record& record = records_[trial];
    const int seen = static_cast<int>(record.values.size());
    if (record.stopped_at != kNever || seen == options_.max_epochs) return;
    record.failed_at = std::min(record.failed_at, seen + 1);
    settle();
  }

  std::vector<Verdict> take_verdicts() override {
    return take_due(verdicts_, [this](int trial) { return records_.at(trial).failed_at != kNever; });
  }

 private:
  struct Queue {
    int next = 0;               // the trial to be judged next
    std::vector<double> means;  // of those judged, ascending
  };

  [[nodiscard]] Queue& queue(int epoch) { return queues_[static_cast<std::size_t>(epoch - options_.min_epochs)]; }

  Decision answer(int trial, int epoch, Record& record) {
    if (record.stopped_at != kNever || record.failed_at != kNever) return Decision::kStop;
    if (epoch == options_.max_epochs) return Decision::kComplete;
    if (epoch < options_.min_epochs || queue(epoch).next > trial) return Decision::kContinue;
    record.waits_at = epoch;
    return Decision::kPause;
  }

  // Judges whoever can be judged. Epochs ascend: later ones have to know who was stopped.
  void settle() {
    for (int epoch = options_.min_epochs; epoch < options_.max_epochs; ++epoch) {
      Queue& line = queue(epoch);
      for (auto at = records_.find(line.next); at != records_.end() && at->first == line.next; ++at, ++line.next) {
        Record& record = at->second;
        if (epoch > options_.min_epochs && queue(epoch - 1).next <= at->first) break;
        if (record.stopped_at < epoch || record.failed_at <= epoch) continue;
        if (!take_in(record, epoch)) break;
        judge(at->first, record, epoch, line);
      }
    }
  }

  // Brings the record's sum and best up to that epoch; false where a report is missing.
  [[nodiscard]] bool take_in(Record& record, int epoch) const {
    if (static_cast<int>(record.values.size()) < epoch) return false;
    for (; record.judged < epoch; ++record.judged) {
      const double value = record.values[static_cast<std::size_t>(record.judged)];
      if (std::isnan(value)) return false;
      record.sum += value;
      if (record.judged == 0 || trials::better(value, record.best, goal_)) record.best = value;
    }
    return true;
  }

  void judge(int trial, Record& record, int epoch, Queue& line) {
    std::vector<double>& means = line.means;
    if (means.size() >= static_cast<std::size_t>(options_.min_trials)) {
      const std::size_t half = means.size() / 2;
      const double median = means.size() % 2 == 1 ? means[half] : (means[half - 1] + means[half]) / 2;
      if (trials::better(median, record.best, goal_)) record.stopped_at = epoch;
    }
    const double mean = record.sum / epoch;
    means.insert(std::upper_bound(means.begin(), means.end(), mean), mean);
    if (record.waits_at != epoch) return;
    record.waits_at = 0;
    verdicts_.push_back({trial, record.stopped_at == epoch ? Decision::kStop : Decision::kContinue});
  }

  StoppingOptions options_;
  trials::Goal goal_;
  std::map<int, Record> records_;  // by trial
  std::vector<Queue> queues_;      // of epochs min_epochs ... max_epochs - 1
  std::vector<Verdict> verdicts_;
};

}  // namespace

std::unique_ptr<Scheduler> make_median(const StoppingOptions& options, trials::Goal goal, const std::vector<int>&) {
  return std::make_unique<Median>(options, goal);
}

}  // namespace hfta::search
