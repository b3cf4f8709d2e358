#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.hpp"
#include "search/dehb_layout.hpp"
#include "search/scheduler.hpp"

namespace hfta::search {
namespace {

// The first pass is Hyperband's; later trials end at the epochs of their rung, and wait for no other trial.
class Dehb final : public Scheduler {
 public:
  Dehb(const HyperbandOptions& options, trials::Goal goal, const std::vector<int>& run_caps)
      : layout_(options), max_epochs_(options.max_epochs) {
    const auto first_pass = static_cast<int>(std::min<std::int64_t>(layout_.first_pass(), kMost));
    capacity_ = run_caps.empty() ? first_pass : run_caps.back();
    std::vector<int> caps;
    for (const int cap : run_caps) caps.push_back(std::min(cap, first_pass));
    first_pass_ = make_hyperband(options, goal, std::move(caps));
  }

  [[nodiscard]] std::optional<int> capacity() const override { return capacity_; }
  [[nodiscard]] int max_epochs() const override { return max_epochs_; }
  [[nodiscard]] int target(int trial) const override {
    return is_first(trial) ? first_pass_->target(trial) : layout_.place(trial).epochs;
  }

  Decision report(int trial, int epoch, double value) override {
    if (is_first(trial)) return first_pass_->report(trial, epoch, value);
    const int epochs = layout_.place(trial).epochs;
    if (epoch < 1 || epoch > epochs || trial >= capacity_) {
      throw Error(ErrorKind::kInternal, fmt::format("dehb: found epoch {} of trial {}, wanted 1 to {}, of 0 to {}",
                                                    epoch, trial, epochs, capacity_ - 1));
    }
    if (!std::isfinite(value)) return Decision::kStop;
    if (epoch < epochs) return Decision::kContinue;
    return epochs == max_epochs_ ? Decision::kComplete : Decision::kStop;
  }

  void fail(int trial) override {
    if (is_first(trial)) first_pass_->fail(trial);
  }
  std::vector<Verdict> take_verdicts() override { return first_pass_->take_verdicts(); }

  [[nodiscard]] std::int64_t planned_epochs(int first, int trials) const override {
    const std::int64_t most = layout_.first_pass();
    const std::int64_t end = std::min<std::int64_t>(std::int64_t{first} + trials, capacity_);
    const std::int64_t taken = std::max<std::int64_t>(0, std::min(end, most) - first);
    const std::int64_t early = taken > 0 ? first_pass_->planned_epochs(first, static_cast<int>(taken)) : 0;
    return early + layout_.later_cost(end) - layout_.later_cost(std::min<std::int64_t>(first, end));
  }

 private:
  static constexpr std::int64_t kMost = 1'000'000'000;

  [[nodiscard]] bool is_first(int trial) const { return trial < layout_.first_pass(); }

  DehbLayout layout_;
  int max_epochs_;
  int capacity_;
  std::unique_ptr<Scheduler> first_pass_;
};

}  // namespace

std::unique_ptr<Scheduler> make_dehb_scheduler(const HyperbandOptions& options, trials::Goal goal,
                                               const std::vector<int>& run_caps) {
  return std::make_unique<Dehb>(options, goal, run_caps);
}

}  // namespace hfta::search
