#include <fmt/format.h>

#include <map>
#include <utility>

#include "search/scheduler.hpp"
#include "search/scheduler/bracket.hpp"
#include "search/scheduler/bracket_layout.hpp"
#include "search/scheduler/verdicts.hpp"

namespace hfta::search {
namespace {

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
    return brackets_.emplace(place.bracket, Bracket(layout_.rungs(place), goal_)).first->second;
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
