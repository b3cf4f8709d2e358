#include <fmt/format.h>

#include <cmath>

#include "base/error.hpp"
#include "search/scheduler.hpp"
#include "search/scheduler/verdicts.hpp"

namespace hfta::search {
namespace {

class Full final : public Scheduler {
 public:
  explicit Full(int epochs) : epochs_(epochs) {
    if (epochs < 1) throw Error(ErrorKind::kConfig, fmt::format("epochs: found {}, wanted at least 1", epochs));
  }

  [[nodiscard]] std::optional<int> capacity() const override { return std::nullopt; }
  [[nodiscard]] int target(int) const override { return epochs_; }
  [[nodiscard]] int max_epochs() const override { return epochs_; }

  Decision report(int trial, int epoch, double value) override {
    require_report(trial, epoch, epochs_);
    if (!std::isfinite(value)) return Decision::kStop;
    return epoch == epochs_ ? Decision::kComplete : Decision::kContinue;
  }

  void fail(int trial) override { require_trial(trial); }
  std::vector<Verdict> take_verdicts() override { return {}; }
  [[nodiscard]] std::int64_t planned_epochs(int, int trials) const override { return std::int64_t{epochs_} * trials; }

 private:
  int epochs_;
};

}  // namespace

std::unique_ptr<Scheduler> make_full(int epochs) { return std::make_unique<Full>(epochs); }

}  // namespace hfta::search
