#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

#include "search/freeze_thaw/planner.hpp"
#include "search/sampler.hpp"
#include "search/sampler/given.hpp"
#include "search/sampler/untried.hpp"

namespace hfta::search {
namespace {

using freeze_thaw::Curve;
using freeze_thaw::Pick;
using freeze_thaw::Planner;
using trials::Params;

bool is_pending(const SeenTrial& trial) { return trial.curve.empty() && !trial.ended; }

class FreezeThaw final : public Sampler {
 public:
  FreezeThaw(const trials::Space& space, const std::set<std::string>& splitting, std::uint64_t seed, trials::Goal goal,
             const FreezeThawOptions& options, Repeats repeats)
      : goal_(goal),
        options_(options),
        parameters_(space.size()),
        planner_(space, splitting, seed, options),
        startup_(make_sobol(space, seed, repeats)),
        tried_(space, repeats) {}

  [[nodiscard]] bool learns() const override { return true; }

  // The scheduler picks for the slots by the same curves: its new ones come first, in their order. They share one
  // partition already, so that callers need not give values.
  std::vector<Params> ask(int first, int k, const History& history, const Params& given) override {
    const std::vector<Curve> curves = curves_of(history);
    const auto pending = static_cast<int>(std::count_if(history.begin(), history.end(), is_pending));
    std::vector<Params> picked;
    if (freeze_thaw::has_begun(curves, options_) && planner_.inputs().size() > 0) {
      tried_.reset({});
      for (const SeenTrial& trial : history) {
        if (!is_pending(trial)) tried_.add(trial.params);
      }
      picked = new_ones(curves, pending + k);
    }
    tried_.reset(history);
    return in_turn(k, tried_, [&](int i) {
      const std::size_t place = static_cast<std::size_t>(pending) + static_cast<std::size_t>(i);
      const bool fresh = place < picked.size() && !tried_.contains(picked[place]) && has_given(picked[place], given);
      return fresh ? picked[place] : untried(*startup_, first + i, tried_, given);
    });
  }

 private:
  [[nodiscard]] std::vector<Curve> curves_of(const History& history) const {
    std::vector<Curve> curves;
    for (std::size_t i = 0; i < history.size(); ++i) {
      const SeenTrial& trial = history[i];
      if (is_pending(trial) || trial.params.size() != parameters_ || freeze_thaw::has_no_curve(trial)) continue;
      Curve curve = freeze_thaw::curve_of(static_cast<int>(i), planner_.vector_of(trial.params), trial.curve,
                                          trial.ended.has_value(), goal_);
      curve.ended |= static_cast<int>(curve.values.size()) >= options_.max_epochs;
      curves.push_back(std::move(curve));
    }
    return curves;
  }

  [[nodiscard]] std::vector<Params> new_ones(const std::vector<Curve>& curves, int count) const {
    const auto allowed = [&](const Vector& x) { return !tried_.contains(planner_.inputs().params_at(x)); };
    std::vector<Params> params;
    for (const Pick& pick :
         planner_.plan(curves, {.slots = 0, .room = std::numeric_limits<int>::max(), .least_new = count}, allowed)) {
      if (pick.trial == freeze_thaw::kNoTrial) params.push_back(planner_.inputs().params_at(pick.x));
    }
    return params;
  }

  trials::Goal goal_;
  FreezeThawOptions options_;
  std::size_t parameters_;
  Planner planner_;
  std::unique_ptr<Sampler> startup_;
  Tried tried_;
};

}  // namespace

std::unique_ptr<Sampler> make_freeze_thaw(const trials::Space& space, const std::set<std::string>& splitting,
                                          std::uint64_t seed, trials::Goal goal, const FreezeThawOptions& options,
                                          Repeats repeats) {
  return std::make_unique<FreezeThaw>(space, splitting, seed, goal, options, repeats);
}

}  // namespace hfta::search
