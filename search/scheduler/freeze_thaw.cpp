#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "search/freeze_thaw/planner.hpp"
#include "search/sampler/untried.hpp"
#include "search/scheduler.hpp"
#include "search/scheduler/verdicts.hpp"

namespace hfta::search {
namespace {

using freeze_thaw::Curve;
using freeze_thaw::Pick;
using freeze_thaw::Planner;

// The reports on one trial, and its state.
struct Record {
  trials::Params params;
  std::map<int, double> values;  // by epoch; not finite: it failed there
  bool failed = false;           // it failed for a reason that has no value
  bool goes_on = false;          // it was told to, and has not reported since
};

class FreezeThaw final : public Scheduler {
 public:
  FreezeThaw(const trials::Space& space, const std::set<std::string>& splitting, std::uint64_t seed, trials::Goal goal,
             const FreezeThawOptions& options, History prior, const std::vector<int>& run_caps,
             std::function<int()> slots)
      : goal_(goal),
        options_(options),
        slots_(std::move(slots)),
        planner_(space, splitting, seed, options),
        prior_(std::move(prior)),
        tried_(space) {
    if (!run_caps.empty()) capacity_ = run_caps.back();
  }

  void enter(int trial, const trials::Params& params) override { records_[trial].params = params; }
  [[nodiscard]] std::optional<int> capacity() const override { return capacity_; }
  [[nodiscard]] int max_epochs() const override { return options_.max_epochs; }
  [[nodiscard]] std::int64_t planned_epochs(int first, int trials) const override {
    const int most = capacity_ ? std::clamp(*capacity_ - first, 0, trials) : trials;
    return std::int64_t{most} * options_.max_epochs;
  }
  [[nodiscard]] int target(int trial) const override {
    const auto found = records_.find(trial);
    const int seen = found == records_.end() || found->second.values.empty() ? 0 : found->second.values.rbegin()->first;
    return std::min(seen + 1, options_.max_epochs);
  }

  Decision report(int trial, int epoch, double value) override {
    require_report(trial, epoch, options_.max_epochs);
    if (capacity_ && trial >= *capacity_) {
      throw Error(ErrorKind::kInternal, fmt::format("freeze_thaw: found trial {}, wanted below {}", trial, *capacity_));
    }
    Record& record = records_[trial];
    const auto [known, is_new] = record.values.emplace(epoch, value);
    if (!is_new && std::isfinite(value)) require_same(trial, epoch, known->second, value);
    settled_ = false;
    record.goes_on = false;
    if (has_failed(record)) return Decision::kStop;
    return epoch == options_.max_epochs ? Decision::kComplete : Decision::kPause;
  }

  void fail(int trial) override {
    require_trial(trial);
    records_[trial].failed = true;
    settled_ = false;
  }

  std::vector<Verdict> take_verdicts() override {
    if (std::exchange(settled_, true)) return {};
    const std::set<int> chosen = chosen_trials();
    std::vector<Verdict> verdicts;
    for (auto& [trial, record] : records_) {
      if (record.values.empty() || has_ended(record)) continue;
      const bool goes_on = chosen.contains(trial);
      if (std::exchange(record.goes_on, goes_on) == goes_on) continue;
      verdicts.push_back({trial, goes_on ? Decision::kContinue : Decision::kPause});
    }
    return verdicts;
  }

 private:
  [[nodiscard]] static bool has_failed(const Record& record) {
    return record.failed || (!record.values.empty() && !std::isfinite(record.values.rbegin()->second));
  }
  [[nodiscard]] bool has_ended(const Record& record) const {
    return has_failed(record) || record.values.contains(options_.max_epochs);
  }
  [[nodiscard]] static std::vector<double> known_values(const Record& record) {
    std::vector<double> values;
    for (const auto& [epoch, value] : record.values) {
      if (epoch != static_cast<int>(values.size()) + 1) break;  // reports may come in any order
      values.push_back(value);
    }
    return values;
  }

  // The trials that go on: those of the plan, for as many slots as there are.
  [[nodiscard]] std::set<int> chosen_trials() {
    std::vector<Curve> curves = curves_of_prior();
    const int first = static_cast<int>(prior_.size());
    std::set<int> waiting;
    tried_.reset(prior_);
    int begun = 0;
    for (const auto& [trial, record] : records_) {
      const std::vector<double> values = known_values(record);
      if (values.empty() && !record.failed) continue;
      ++begun;
      tried_.add(record.params);
      curves.push_back(
          freeze_thaw::curve_of(first + trial, planner_.vector_of(record.params), values, has_ended(record), goal_));
      if (!curves.back().ended) waiting.insert(trial);
    }
    const int room = capacity_ ? std::max(0, *capacity_ - begun) : std::numeric_limits<int>::max();
    return chosen_of(curves, waiting, room);
  }

  [[nodiscard]] std::set<int> chosen_of(const std::vector<Curve>& curves, const std::set<int>& waiting,
                                        int room) const {
    const bool plans = freeze_thaw::has_begun(curves, options_) && planner_.inputs().size() > 0;
    if (!plans && room > 0 && planner_.inputs().size() > 0) return {};  // only new ones begin
    const int slots = wanted_slots();
    if (!plans)
      return {waiting.begin(), std::next(waiting.begin(), std::min<std::ptrdiff_t>(slots, std::ssize(waiting)))};
    const auto allowed = [&](const Vector& x) { return !tried_.contains(planner_.inputs().params_at(x)); };
    std::set<int> chosen;
    for (const Pick& pick : planner_.plan(curves, {.slots = slots, .room = room}, allowed)) {
      if (pick.trial != freeze_thaw::kNoTrial) chosen.insert(pick.trial - static_cast<int>(prior_.size()));
    }
    return chosen;
  }

  [[nodiscard]] int wanted_slots() const {
    constexpr int kUnknown = 8;
    if (options_.slots > 0) return options_.slots;
    return slots_ ? std::max(1, slots_()) : kUnknown;
  }

  [[nodiscard]] std::vector<Curve> curves_of_prior() const {
    std::vector<Curve> curves;
    for (std::size_t i = 0; i < prior_.size(); ++i) {
      if (freeze_thaw::has_no_curve(prior_[i])) continue;
      curves.push_back(freeze_thaw::curve_of(static_cast<int>(i), planner_.vector_of(prior_[i].params), prior_[i].curve,
                                             true, goal_));
    }
    return curves;
  }

  trials::Goal goal_;
  FreezeThawOptions options_;
  std::function<int()> slots_;
  Planner planner_;
  History prior_;
  Tried tried_;
  std::optional<int> capacity_;
  std::map<int, Record> records_;  // keyed by trial
  bool settled_ = true;            // no report since the last verdicts
};

}  // namespace

std::unique_ptr<Scheduler> make_freeze_thaw_scheduler(const trials::Space& space,
                                                      const std::set<std::string>& splitting, std::uint64_t seed,
                                                      trials::Goal goal, const FreezeThawOptions& options,
                                                      History prior, const std::vector<int>& run_caps,
                                                      std::function<int()> slots) {
  return std::make_unique<FreezeThaw>(space, splitting, seed, goal, options, std::move(prior), run_caps,
                                      std::move(slots));
}

}  // namespace hfta::search
