#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "search/scheduler/verdicts.hpp"
#include "search/stopping.hpp"

namespace hfta::search {
namespace {

constexpr int kNever = std::numeric_limits<int>::max();

// The reports on one trial, and its state.
struct Record {
  std::map<std::size_t, double> values;  // by rung: the value at that rung's last epoch
  int seen = 0;                          // the latest epoch reported
  int failed_at = kNever;                // the epoch that it did not survive
  std::size_t rung = 0;                  // the rung that it was let into
  bool stopped = false;
  bool waits = false;  // it was told to pause
};

// The draws between two caps. Everything follows from the order in which trials count at a rung, which is that of their
// draws at the first, and of their promotion above; when their reports came in plays no part.
class Race {
 public:
  Race(int first, int end, std::vector<int> epochs, int eta, trials::Goal goal)
      : first_(first), end_(end), epochs_(std::move(epochs)), eta_(eta), goal_(goal), rungs_(epochs_.size()) {}

  Decision report(int trial, int epoch, double value, std::vector<Verdict>& verdicts) {
    Record& record = records_[trial];
    record.seen = std::max(record.seen, epoch);
    if (!std::isfinite(value)) {
      record.failed_at = std::min(record.failed_at, epoch);
    } else if (const auto rung = std::find(epochs_.begin(), epochs_.end(), epoch); rung != epochs_.end()) {
      const auto [known, is_new] = record.values.emplace(static_cast<std::size_t>(rung - epochs_.begin()), value);
      if (!is_new) require_same(trial, epoch, known->second, value);
    }
    record.waits = false;
    settle(verdicts);
    return answer(record, epoch);
  }

  void fail(int trial, std::vector<Verdict>& verdicts) {
    Record& record = records_[trial];
    if (record.stopped || completed(record)) return;
    record.failed_at = std::min(record.failed_at, record.seen + 1);
    settle(verdicts);
  }

  [[nodiscard]] int target(int trial) const {
    const auto found = records_.find(trial);
    return epochs_[found == records_.end() ? 0 : found->second.rung];
  }
  [[nodiscard]] bool failed(int trial) const { return records_.at(trial).failed_at != kNever; }
  [[nodiscard]] int end() const { return end_; }

 private:
  struct Rung {
    std::vector<int> arrivals;               // trials in the order in which they count; unused in the first rung
    std::size_t counted = 0;                 // arrivals that have reported, or failed before
    std::set<std::pair<double, int>> ranks;  // (value, place among the arrivals), best first; trials not yet out
    std::size_t size = 0;                    // trials that have ever ranked
    std::size_t ranked_promoted = 0;         // trials in `ranks` that were promoted
    std::size_t promoted = 0;
    bool closed = false;
  };

  [[nodiscard]] Decision answer(Record& record, int epoch) const {
    if (record.stopped || record.failed_at != kNever) return Decision::kStop;
    if (completed(record)) return Decision::kComplete;
    if (epoch < epochs_[record.rung] && record.values.count(record.rung) == 0) return Decision::kContinue;
    record.waits = true;
    return Decision::kPause;
  }

  [[nodiscard]] bool completed(const Record& record) const {
    return record.rung + 1 == rungs_.size() && record.values.count(record.rung) != 0;
  }

  [[nodiscard]] std::size_t arrivals(std::size_t rung) const {
    return rung == 0 ? static_cast<std::size_t>(end_ - first_) : rungs_[rung].arrivals.size();
  }
  [[nodiscard]] int arrival(std::size_t rung, std::size_t place) const {
    return rung == 0 ? first_ + static_cast<int>(place) : rungs_[rung].arrivals[place];
  }

  void settle(std::vector<Verdict>& verdicts) {
    for (std::size_t i = 0; i + 1 < rungs_.size(); ++i) {
      while (count_next(i)) advance(i, verdicts);
      // Stops depend on all that is known: they may follow from news of the rungs below alone.
      stop_hopeless(i, verdicts);
      const bool below_closed = i == 0 || rungs_[i - 1].closed;
      if (!rungs_[i].closed && below_closed && rungs_[i].counted == arrivals(i)) close(i, verdicts);
    }
  }

  // The most trials that can reach a rung in the end: those below that are neither promoted nor out may all follow.
  // It never rises, so that it does not matter when the trials that it leaves no room for are stopped.
  [[nodiscard]] std::size_t most_arrivals(std::size_t i) const {
    if (i == 0) return arrivals(0);
    const Rung& below = rungs_[i - 1];
    const std::size_t waiting = below.ranks.size() - below.ranked_promoted;
    return arrivals(i) + (below.closed ? 0 : waiting + most_arrivals(i - 1) - below.counted);
  }

  // Counts the next arrival at a rung; false where its report is missing, or no arrival is left.
  [[nodiscard]] bool count_next(std::size_t i) {
    Rung& rung = rungs_[i];
    if (rung.counted == arrivals(i)) return false;
    const auto found = records_.find(arrival(i, rung.counted));
    if (found == records_.end()) return false;
    const Record& record = found->second;
    const auto value = record.values.find(i);
    if (record.failed_at > epochs_[i]) {
      if (value == record.values.end()) return false;
      rung.ranks.emplace(goal_ == trials::Goal::kMinimize ? value->second : -value->second,
                         static_cast<int>(rung.counted));
      ++rung.size;
    }
    ++rung.counted;
    return true;
  }

  // Promotes the trials that are among the best now.
  void advance(std::size_t i, std::vector<Verdict>& verdicts) {
    Rung& rung = rungs_[i];
    // Promoted trials are still ranked: of the best size / eta, some have gone on already.
    const auto best = static_cast<std::ptrdiff_t>(rung.size / static_cast<std::size_t>(eta_));
    auto at = rung.ranks.begin();
    for (std::ptrdiff_t place = 0; place < best; ++place, ++at) promote(i, at->second, verdicts);
    stop_hopeless(i, verdicts);
  }

  // Stops the trials that cannot be among the best any more.
  void stop_hopeless(std::size_t i, std::vector<Verdict>& verdicts) {
    Rung& rung = rungs_[i];
    const std::size_t open = std::max<std::size_t>(1, most_arrivals(i) / static_cast<std::size_t>(eta_));
    while (rung.ranks.size() > open) {
      const auto worst = std::prev(rung.ranks.end());
      stop(i, worst->second, verdicts);
      if (is_promoted(i, worst->second)) --rung.ranked_promoted;
      rung.ranks.erase(worst);
    }
  }

  [[nodiscard]] bool is_promoted(std::size_t i, int place) const {
    return records_.at(arrival(i, static_cast<std::size_t>(place))).rung > i;
  }

  void close(std::size_t i, std::vector<Verdict>& verdicts) {
    Rung& rung = rungs_[i];
    rung.closed = true;
    if (rung.promoted == 0 && !rung.ranks.empty()) promote(i, rung.ranks.begin()->second, verdicts);
    for (const auto& [value, place] : rung.ranks) stop(i, place, verdicts);
  }

  void promote(std::size_t i, int place, std::vector<Verdict>& verdicts) {
    const int trial = arrival(i, static_cast<std::size_t>(place));
    Record& record = records_.at(trial);
    if (record.rung > i) return;
    record.rung = i + 1;
    rungs_[i + 1].arrivals.push_back(trial);
    ++rungs_[i].promoted;
    ++rungs_[i].ranked_promoted;
    tell(trial, record, Decision::kContinue, verdicts);
  }

  // Stops a trial; no effect on one that was promoted.
  void stop(std::size_t i, int place, std::vector<Verdict>& verdicts) {
    const int trial = arrival(i, static_cast<std::size_t>(place));
    Record& record = records_.at(trial);
    if (record.rung > i || record.stopped) return;
    record.stopped = true;
    tell(trial, record, Decision::kStop, verdicts);
  }

  static void tell(int trial, Record& record, Decision decision, std::vector<Verdict>& verdicts) {
    if (std::exchange(record.waits, false)) verdicts.push_back({trial, decision});
  }

  int first_, end_;
  std::vector<int> epochs_;  // the last epoch of each rung
  int eta_;
  trials::Goal goal_;
  std::vector<Rung> rungs_;
  std::map<int, Record> records_;  // keyed by trial
};

class Asha final : public Scheduler {
 public:
  Asha(const StoppingOptions& options, trials::Goal goal, const std::vector<int>& run_caps)
      : epochs_(asha_rungs(options)), eta_(options.eta) {
    for (const auto& [first, cap] : draws_by_cap(run_caps)) races_.emplace_back(first, cap, epochs_, eta_, goal);
  }

  [[nodiscard]] std::optional<int> capacity() const override { return races_.back().end(); }
  [[nodiscard]] int max_epochs() const override { return epochs_.back(); }
  [[nodiscard]] int target(int trial) const override { return race_of(trial).target(trial); }

  Decision report(int trial, int epoch, double value) override {
    require_report(trial, epoch, epochs_.back());
    return race_of(trial).report(trial, epoch, value, verdicts_);
  }
  void fail(int trial) override { race_of(trial).fail(trial, verdicts_); }

  std::vector<Verdict> take_verdicts() override {
    return take_due(verdicts_, [this](int trial) { return race_of(trial).failed(trial); });
  }

  // About n / eta^k of n trials reach rung k.
  [[nodiscard]] std::int64_t planned_epochs(int, int trials) const override {
    double cost = 0, left = trials;
    int trained = 0;
    for (const int epochs : epochs_) {
      cost += left * (epochs - std::exchange(trained, epochs));
      left /= eta_;
    }
    return static_cast<std::int64_t>(std::llround(cost));
  }

 private:
  [[nodiscard]] std::size_t place_of(int trial) const {
    const auto found =
        std::partition_point(races_.begin(), races_.end(), [trial](const Race& race) { return race.end() <= trial; });
    if (trial < 0 || found == races_.end()) {
      throw Error(ErrorKind::kInternal,
                  fmt::format("asha: found trial {}, wanted 0 to {}", trial, races_.back().end() - 1));
    }
    return static_cast<std::size_t>(found - races_.begin());
  }
  [[nodiscard]] const Race& race_of(int trial) const { return races_[place_of(trial)]; }
  [[nodiscard]] Race& race_of(int trial) { return races_[place_of(trial)]; }

  std::vector<int> epochs_;
  int eta_;
  std::vector<Race> races_;
  std::vector<Verdict> verdicts_;
};

}  // namespace

std::vector<int> asha_rungs(const StoppingOptions& options) {
  if (options.min_epochs < 1 || options.min_epochs > options.max_epochs || options.eta < 2) {
    throw Error(ErrorKind::kConfig, fmt::format("asha: found min_epochs {} and eta {}, wanted 1 to {} and at least 2",
                                                options.min_epochs, options.eta, options.max_epochs));
  }
  std::vector<int> epochs;
  for (std::int64_t at = options.min_epochs; at < options.max_epochs; at *= options.eta) {
    epochs.push_back(static_cast<int>(at));
  }
  epochs.push_back(options.max_epochs);
  return epochs;
}

std::vector<std::pair<int, int>> draws_by_cap(const std::vector<int>& run_caps) {
  std::vector<std::pair<int, int>> parts;
  int first = 0;
  for (const int cap : run_caps) {
    if (cap < std::max(1, first)) {
      throw Error(ErrorKind::kConfig, fmt::format("run_cap: found {}, wanted at least {}", cap, std::max(1, first)));
    }
    if (cap > first) parts.emplace_back(first, cap);
    first = cap;
  }
  if (parts.empty()) {
    throw Error(ErrorKind::kConfig, "run_cap: found nothing, wanted the number of trials, of which rungs keep a share");
  }
  return parts;
}

std::unique_ptr<Scheduler> make_asha(const StoppingOptions& options, trials::Goal goal,
                                     const std::vector<int>& run_caps) {
  return std::make_unique<Asha>(options, goal, run_caps);
}

}  // namespace hfta::search
