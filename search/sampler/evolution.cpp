#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/random.hpp"
#include "search/sampler.hpp"
#include "search/sampler/given.hpp"
#include "search/sampler/inputs.hpp"
#include "search/sampler/rank.hpp"
#include "search/sampler/untried.hpp"

namespace hfta::search {
namespace {

using trials::Params;

constexpr int kMostTries = 64;      // mutations until one is new
constexpr double kAnew = 0.3;       // how often a number is drawn anew rather than moved
constexpr double kDeviation = 0.1;  // standard deviation of a move, on the unit scale
constexpr double kKept = 0.75;      // how often a part of a space is as in the parent, where it has few values

class Evolution final : public Sampler {
 public:
  Evolution(trials::Space space, std::uint64_t seed, trials::Goal goal, const EvolutionOptions& options,
            Repeats repeats)
      : space_(std::move(space)),
        seed_(seed),
        goal_(goal),
        options_(options),
        inputs_(space_),
        startup_(make_sobol(space_, seed, repeats)),
        tried_(space_, repeats),
        keeps_(repeats == Repeats::kAllowed && Tried(space_).is_finite()) {}

  [[nodiscard]] bool learns() const override { return true; }

  std::vector<Params> ask(int first, int k, const History& history, const Params& given) override {
    tried_.reset(history);
    const std::vector<const SeenTrial*> population = population_of(history);
    return in_turn(k, tried_, [&](int i) { return draw(first + i, population, given); });
  }

 private:
  // The latest trials by draw that have ended; fewer than `population` while there are not more.
  [[nodiscard]] std::vector<const SeenTrial*> population_of(const History& history) const {
    std::vector<const SeenTrial*> latest;
    const auto most = static_cast<std::size_t>(options_.population);
    for (auto trial = history.rbegin(); trial != history.rend() && latest.size() < most; ++trial) {
      if (trial->ended && trial->params.size() == space_.size()) latest.push_back(&*trial);
    }
    return latest;
  }

  [[nodiscard]] Params draw(int number, const std::vector<const SeenTrial*>& population, const Params& given) {
    if (population.size() < static_cast<std::size_t>(options_.population) || inputs_.size() == 0) {
      return untried(*startup_, number, tried_, given);
    }
    CountedRandom random(seed_, Stream::kEvolution, static_cast<std::uint64_t>(number));
    const SeenTrial& parent = winner(population, random);
    if (keeps_ && random.uniform() < kKept) return with_given(parent.params, given);
    for (int i = 0; i < kMostTries; ++i) {
      Params child = with_given(mutated(parent.params, random), given);
      if (child != parent.params && !tried_.contains(child)) return child;
    }
    return untried(*startup_, number, tried_, given);
  }

  // The best of some trials that are picked at random.
  [[nodiscard]] const SeenTrial& winner(const std::vector<const SeenTrial*>& population, CountedRandom& random) const {
    const SeenTrial* best = population[random.below(population.size())];
    for (int i = 1; i < options_.tournament; ++i) {
      const SeenTrial* one = population[random.below(population.size())];
      if (rank_of(*one, goal_) < rank_of(*best, goal_)) best = one;
    }
    return *best;
  }

  // The parent with one parameter's value changed.
  [[nodiscard]] Params mutated(const Params& parent, CountedRandom& random) const {
    Vector x = inputs_.vector_of(parent);
    const auto i = static_cast<Eigen::Index>(random.below(static_cast<std::uint64_t>(inputs_.size())));
    const Dimension& dimension = inputs_.dimensions()[static_cast<std::size_t>(i)];
    if (dimension.is_category()) {
      x[i] = dimension.options[random.below(dimension.options.size())];
    } else {
      const double anew = random.uniform(), moved = x[i] + kDeviation * random.normal();
      x[i] = random.uniform() < kAnew ? anew : moved;
    }
    Params child = parent;
    const std::size_t parameter = dimension.parameter;
    child[parameter].second = inputs_.params_at(inputs_.rounded(std::move(x)))[parameter].second;
    return child;
  }

  trials::Space space_;
  std::uint64_t seed_;
  trials::Goal goal_;
  EvolutionOptions options_;
  Inputs inputs_;
  std::unique_ptr<Sampler> startup_;
  Tried tried_;
  bool keeps_;  // this is a part of few values: another part may have to change
};

}  // namespace

std::unique_ptr<Sampler> make_evolution(trials::Space space, std::uint64_t seed, trials::Goal goal,
                                        const EvolutionOptions& options, Repeats repeats) {
  if (options.population < 1 || options.tournament < 1) {
    throw Error(ErrorKind::kConfig, fmt::format("evolution: found population {} and tournament {}, wanted at least 1",
                                                options.population, options.tournament));
  }
  return std::make_unique<Evolution>(std::move(space), seed, goal, options, repeats);
}

}  // namespace hfta::search
