#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "search/scheduler/bracket.hpp"
#include "search/scheduler/verdicts.hpp"
#include "search/stopping.hpp"

namespace hfta::search {
namespace {

// The draws between two caps.
struct Heat {
  int first = 0, end = 0;
  std::vector<Rung> rungs;
  Bracket bracket;
};

class SuccessiveHalving final : public Scheduler {
 public:
  SuccessiveHalving(const StoppingOptions& options, trials::Goal goal, const std::vector<int>& run_caps)
      : epochs_(asha_rungs(options)) {
    for (const auto& [first, cap] : draws_by_cap(run_caps)) {
      std::vector<Rung> rungs;
      for (int trials = cap - first; const int epochs : epochs_) {
        rungs.push_back({trials, epochs});
        trials = std::max(1, trials / options.eta);
      }
      heats_.push_back({first, cap, rungs, Bracket(rungs, goal)});
    }
  }

  [[nodiscard]] std::optional<int> capacity() const override { return heats_.back().end; }
  [[nodiscard]] int max_epochs() const override { return epochs_.back(); }
  [[nodiscard]] int target(int trial) const override { return heats_[place_of(trial)].bracket.target(trial); }
  Decision report(int trial, int epoch, double value) override {
    return heats_[place_of(trial)].bracket.report(trial, epoch, value, verdicts_);
  }
  void fail(int trial) override { heats_[place_of(trial)].bracket.fail(trial, verdicts_); }
  std::vector<Verdict> take_verdicts() override {
    return take_due(verdicts_, [this](int trial) { return heats_[place_of(trial)].bracket.failed(trial); });
  }

  // A bracket that is filled in part costs its share.
  [[nodiscard]] std::int64_t planned_epochs(int first, int trials) const override {
    double cost = 0;
    for (const Heat& heat : heats_) {
      const std::int64_t last = std::min<std::int64_t>(std::int64_t{first} + trials, heat.end);
      const std::int64_t taken = std::max<std::int64_t>(0, last - std::max(first, heat.first));
      cost += static_cast<double>(cost_of(heat.rungs)) * static_cast<double>(taken) / (heat.end - heat.first);
    }
    return static_cast<std::int64_t>(cost);
  }

 private:
  [[nodiscard]] std::size_t place_of(int trial) const {
    const auto found =
        std::partition_point(heats_.begin(), heats_.end(), [=](const Heat& h) { return h.end <= trial; });
    if (trial < 0 || found == heats_.end()) {
      throw Error(ErrorKind::kInternal, fmt::format("sha: found trial {}, wanted 0 to {}", trial, *capacity() - 1));
    }
    return static_cast<std::size_t>(found - heats_.begin());
  }

  std::vector<int> epochs_;  // the last epoch of each rung
  std::vector<Heat> heats_;
  std::vector<Verdict> verdicts_;
};

}  // namespace

std::unique_ptr<Scheduler> make_sha(const StoppingOptions& options, trials::Goal goal,
                                    const std::vector<int>& run_caps) {
  return std::make_unique<SuccessiveHalving>(options, goal, run_caps);
}

}  // namespace hfta::search
