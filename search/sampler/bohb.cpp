#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "search/sampler.hpp"
#include "search/sampler/given.hpp"
#include "search/sampler/parzen.hpp"

namespace hfta::search {
namespace {

using trials::Params;

constexpr std::uint64_t kOwnNumbers = 1;  // sub-item of Stream::kTpe, distinct from TPE's own

class Bohb final : public Sampler {
 public:
  Bohb(trials::Space space, std::uint64_t seed, trials::Goal goal, const BohbOptions& options, std::vector<int> budgets,
       Repeats repeats)
      : space_(std::move(space)),
        seed_(seed),
        goal_(goal),
        options_(options),
        budgets_(std::move(budgets)),
        random_(make_random(space_, seed, repeats)),
        axes_(axes_of(space_)) {
    std::sort(budgets_.begin(), budgets_.end());
  }

  [[nodiscard]] bool learns() const override { return true; }

  std::vector<Params> ask(int first, int k, const History& history, const Params& given) override {
    const std::optional<Densities> densities = densities_of(history);
    std::vector<Params> asked;
    for (int number = first; number < first + k; ++number) asked.push_back(draw(number, densities, given));
    return asked;
  }

 private:
  struct Densities {
    Parzen good, bad;
  };

  struct Ranked {
    std::vector<Points> points;  // best first
    std::size_t reached = 0;     // how many of them have not failed
  };

  // Ranks the trials with a finite value at a budget; trials that failed by then rank below all others.
  [[nodiscard]] Ranked ranked_at(int budget, const History& history) const {
    std::vector<std::pair<double, std::size_t>> ranked;
    Ranked result;
    for (std::size_t i = 0; i < history.size(); ++i) {
      const SeenTrial& trial = history[i];
      if (trial.params.size() != space_.size()) continue;
      const auto last = static_cast<std::size_t>(budget);
      const bool failed = trial.ended == trials::State::kFail && trial.curve.size() <= last;
      if (!failed && trial.curve.size() < last) continue;
      const double value = failed ? std::nan("") : trial.curve[last - 1];
      const double loss = goal_ == trials::Goal::kMinimize ? value : -value;
      ranked.emplace_back(std::isfinite(loss) ? loss : std::numeric_limits<double>::infinity(), i);
      result.reached += std::isfinite(loss) ? 1 : 0;
    }
    std::sort(ranked.begin(), ranked.end());  // ties to the earlier draw
    for (const auto& [loss, i] : ranked) result.points.push_back(points_of(history[i].params));
    return result;
  }

  // The densities of the largest budget that has enough trials: min_points + 2, of which at least min_points are good
  // and as many are bad.
  [[nodiscard]] std::optional<Densities> densities_of(const History& history) const {
    const std::size_t least =
        options_.min_points > 0 ? static_cast<std::size_t>(options_.min_points) : axes_.size() + 1;
    // clang 14 has no reversed views. NOLINTNEXTLINE(modernize-loop-convert)
    for (auto budget = budgets_.rbegin(); budget != budgets_.rend(); ++budget) {
      const auto [ranked, reached] = ranked_at(*budget, history);
      const std::size_t n = ranked.size();
      if (reached < least + 2) continue;
      const std::size_t good = std::max(least, n * static_cast<std::size_t>(options_.top_percent) / 100);
      const std::size_t bad =
          std::max(least, n - std::min(n, n * static_cast<std::size_t>(options_.top_percent) / 100));
      const auto at = [&points = ranked](std::size_t i) { return points.begin() + static_cast<std::ptrdiff_t>(i); };
      return Densities{Parzen(axes_, {ranked.begin(), at(std::min(good, n))}),
                       Parzen(axes_, {at(n - std::min(bad, n)), ranked.end()})};
    }
    return std::nullopt;
  }

  [[nodiscard]] Params draw(int number, const std::optional<Densities>& densities, const Params& given) const {
    CountedRandom random(seed_, Stream::kTpe, static_cast<std::uint64_t>(number), kOwnNumbers);
    const bool at_random = 100 * random.uniform() < options_.random_percent;
    if (!densities || at_random) return with_given(std::move(random_->ask(number, 1, {}).front()), given);
    const Parzen::Condition condition = densities->good.under(given_points(space_, axes_, given));
    Points best;
    double highest = -std::numeric_limits<double>::infinity();
    for (int i = 0; i < options_.candidates; ++i) {
      Points points = densities->good.sample(random, condition);
      const double gain = densities->good.log_density(points) - densities->bad.log_density(points);
      if (!best.empty() && !(gain > highest)) continue;
      highest = gain;
      best = std::move(points);
    }
    Params params;
    for (std::size_t i = 0; i < axes_.size(); ++i) params.emplace_back(space_[i].name, axes_[i].value_at(best[i]));
    return params;
  }

  [[nodiscard]] Points points_of(const Params& params) const {
    Points points;
    for (std::size_t i = 0; i < axes_.size(); ++i) points.push_back(axes_[i].point_of(params[i].second));
    return points;
  }

  trials::Space space_;
  std::uint64_t seed_;
  trials::Goal goal_;
  BohbOptions options_;
  std::vector<int> budgets_;
  std::unique_ptr<Sampler> random_;
  Axes axes_;
};

}  // namespace

std::unique_ptr<Sampler> make_bohb(trials::Space space, std::uint64_t seed, trials::Goal goal,
                                   const BohbOptions& options, std::vector<int> budgets, Repeats repeats) {
  return std::make_unique<Bohb>(std::move(space), seed, goal, options, std::move(budgets), repeats);
}

}  // namespace hfta::search
