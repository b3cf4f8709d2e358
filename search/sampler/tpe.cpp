#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "search/choices.hpp"
#include "search/sampler.hpp"
#include "search/sampler/parzen.hpp"
#include "search/sampler/rank.hpp"
#include "search/sampler/untried.hpp"

namespace hfta::search {
namespace {

using trials::Params;

constexpr std::size_t kMostGood = 25;

trials::Distribution constant(const trials::ParamValue& value) {
  trials::Distribution distribution;
  distribution.kind = trials::DistributionKind::kConstant;
  distribution.values = {value};
  return distribution;
}

class Tpe final : public Sampler {
 public:
  Tpe(trials::Space space, std::uint64_t seed, trials::Goal goal, const TpeOptions& options)
      : space_(std::move(space)),
        seed_(seed),
        goal_(goal),
        options_(options),
        random_(make_random(space_, seed)),
        tried_(space_) {
    for (const trials::Parameter& parameter : space_) {
      const auto choices = Choices::of(parameter.distribution);
      axes_.emplace_back(choices && choices->count() == 1 ? constant(choices->value(0)) : parameter.distribution);
    }
  }

  [[nodiscard]] bool learns() const override { return true; }

  std::vector<Params> ask(int first, int k, const History& history) override {
    std::vector<Params> asked;
    tried_.reset(history);
    const auto ended = std::count_if(history.begin(), history.end(), [](const SeenTrial& t) { return t.ended; });
    for (int i = 0; i < k; ++i) {
      asked.push_back(ended < options_.startup_trials ? untried(*random_, first + i, tried_)
                                                      : draw(first + i, history, asked));
      tried_.add(asked.back());
    }
    return asked;
  }

 private:
  // Those that count least first (search/sampler/parzen.hpp): what ended from best to worst, then what runs.
  struct Split {
    std::vector<Points> good, others;
  };

  [[nodiscard]] Params draw(int number, const History& history, const std::vector<Params>& pending) const {
    const Split split = split_of(history, pending);
    const Parzen good(axes_, split.good), others(axes_, split.others);
    CountedRandom random(seed_, Stream::kTpe, static_cast<std::uint64_t>(number));
    std::optional<Params> best;
    double highest = -std::numeric_limits<double>::infinity();
    for (int i = 0; i < options_.candidates; ++i) {
      const Points points = good.sample(random);
      Params params = params_at(points);
      if (tried_.contains(params)) continue;
      const double gain = good.log_density(points) - others.log_density(points);
      if (best && !(gain > highest)) continue;
      highest = gain;
      best = std::move(params);
    }
    return best ? std::move(*best) : untried(*random_, number, tried_);
  }

  // What runs counts as bad: the next draws keep away from it (constant liar).
  [[nodiscard]] Split split_of(const History& history, const std::vector<Params>& pending) const {
    std::vector<std::pair<Rank, std::size_t>> ranked;
    for (std::size_t i = 0; i < history.size(); ++i) {
      if (history[i].ended && is_whole(history[i])) ranked.emplace_back(rank_of(history[i], goal_), i);
    }
    std::sort(ranked.begin(), ranked.end());  // ties to the earlier draw
    const auto tenth = static_cast<std::size_t>(std::ceil(0.1 * static_cast<double>(ranked.size())));
    Split split;
    for (std::size_t i = 0; i < ranked.size(); ++i) {
      const bool good = i < std::min(tenth, kMostGood) && !ranked[i].first.has_failed();
      (good ? split.good : split.others).push_back(points_of(history[ranked[i].second].params));
    }
    for (const SeenTrial& trial : history) {
      if (!trial.ended && is_whole(trial)) split.others.push_back(points_of(trial.params));
    }
    for (const Params& params : pending) split.others.push_back(points_of(params));
    return split;
  }

  // One that another program asked for and that could not be tried may lack parameters.
  [[nodiscard]] bool is_whole(const SeenTrial& trial) const { return trial.params.size() == space_.size(); }

  [[nodiscard]] Points points_of(const Params& params) const {
    Points points;
    for (std::size_t i = 0; i < axes_.size(); ++i) points.push_back(axes_[i].point_of(params[i].second));
    return points;
  }

  [[nodiscard]] Params params_at(const Points& points) const {
    Params params;
    for (std::size_t i = 0; i < axes_.size(); ++i) params.emplace_back(space_[i].name, axes_[i].value_at(points[i]));
    return params;
  }

  trials::Space space_;
  std::uint64_t seed_;
  trials::Goal goal_;
  TpeOptions options_;
  std::unique_ptr<Sampler> random_;
  Axes axes_;
  Tried tried_;
};

}  // namespace

std::unique_ptr<Sampler> make_tpe(trials::Space space, std::uint64_t seed, trials::Goal goal,
                                  const TpeOptions& options) {
  return std::make_unique<Tpe>(std::move(space), seed, goal, options);
}

}  // namespace hfta::search
