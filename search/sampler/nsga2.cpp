#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/random.hpp"
#include "search/sampler.hpp"
#include "search/sampler/given.hpp"
#include "search/sampler/inputs.hpp"
#include "search/sampler/untried.hpp"
#include "trials/pareto.hpp"

namespace hfta::search {
namespace {

using trials::Params;
using trials::Point;

constexpr int kMostTries = 64;      // offspring until one is new
constexpr double kCrossover = 0.9;  // how often a child has two parents
constexpr double kSpread = 20;      // Deb's distribution index of a mutation; more keeps children nearer

/// A trial that may be a parent.
struct Parent {
  const SeenTrial* trial = nullptr;
  std::size_t front = 0;
  double crowding = 0;

  // Compares by the paper's crowded comparison.
  [[nodiscard]] bool beats(const Parent& other) const {
    return front != other.front ? front < other.front : crowding > other.crowding;
  }
};

class Nsga2 final : public Sampler {
 public:
  Nsga2(trials::Space space, std::uint64_t seed, const std::vector<trials::Goal>& goals, const Nsga2Options& options,
        Repeats repeats)
      : space_(std::move(space)),
        seed_(seed),
        options_(options),
        inputs_(space_),
        startup_(make_sobol(space_, seed, repeats)),
        tried_(space_, repeats),
        keeps_(repeats == Repeats::kAllowed && Tried(space_).is_finite()) {
    for (const trials::Goal goal : goals) objectives_.push_back({"", goal});
  }

  [[nodiscard]] bool learns() const override { return true; }

  std::vector<Params> ask(int first, int k, const History& history, const Params& given) override {
    tried_.reset(history);
    const std::vector<Parent> population = population_of(history);
    return in_turn(k, tried_, [&](int i) { return draw(first + i, population, given); });
  }

 private:
  // Empty while too few trials have ended to be parents. The last front that has room gives its least crowded ones.
  [[nodiscard]] std::vector<Parent> population_of(const History& history) const {
    std::vector<const SeenTrial*> those;
    std::vector<Point> points;
    for (const SeenTrial& trial : history) {
      if (auto point = point_of(trial)) {
        those.push_back(&trial);
        points.push_back(std::move(*point));
      }
    }
    const auto most = static_cast<std::size_t>(options_.population);
    if (points.size() < most) return {};
    std::vector<Parent> population;
    const std::vector<std::vector<std::size_t>> fronts = trials::fronts_of(points);
    for (std::size_t front = 0; front < fronts.size(); ++front) {
      std::vector<Point> members;
      for (const std::size_t member : fronts[front]) members.push_back(points[member]);
      const std::vector<double> distances = trials::crowding_distances(members);
      for (std::size_t i = 0; i < members.size(); ++i) {
        population.push_back({those[fronts[front][i]], front, distances[i]});
      }
    }
    std::stable_sort(population.begin(), population.end(), [](const Parent& a, const Parent& b) { return a.beats(b); });
    population.resize(most);
    return population;
  }

  // The point of a trial that is COMPLETE; a failed trial is no parent.
  [[nodiscard]] std::optional<Point> point_of(const SeenTrial& trial) const {
    if (trial.ended != trials::State::kComplete || trial.params.size() != space_.size()) return std::nullopt;
    return trials::point_of(trial.values, objectives_);
  }

  [[nodiscard]] Params draw(int number, const std::vector<Parent>& population, const Params& given) {
    if (population.empty() || inputs_.size() == 0) return untried(*startup_, number, tried_, given);
    CountedRandom random(seed_, Stream::kNsga2, static_cast<std::uint64_t>(number));
    for (int i = 0; i < kMostTries; ++i) {
      Params child =
          with_given(inputs_.params_at(inputs_.rounded(mutated(crossed(population, random), random))), given);
      if (keeps_ || !tried_.contains(child)) return child;
    }
    return untried(*startup_, number, tried_, given);
  }

  // The winner of a tournament of two; if they are equal, the first.
  [[nodiscard]] static const Parent& winner(const std::vector<Parent>& population, CountedRandom& random) {
    const Parent& a = population[random.below(population.size())];
    const Parent& b = population[random.below(population.size())];
    return b.beats(a) ? b : a;
  }

  // Uniform crossover of two winners: each number comes from either parent.
  [[nodiscard]] Vector crossed(const std::vector<Parent>& population, CountedRandom& random) const {
    Vector child = inputs_.vector_of(winner(population, random).trial->params);
    if (random.uniform() >= kCrossover) return child;
    const Vector other = inputs_.vector_of(winner(population, random).trial->params);
    for (Eigen::Index i = 0; i < child.size(); ++i) {
      if (random.uniform() < 0.5) child[i] = other[i];
    }
    return child;
  }

  // Changes one number of a child on average; in a part of few values, fewer, as if it had one number more.
  [[nodiscard]] Vector mutated(Vector x, CountedRandom& random) const {
    const double often = 1.0 / (static_cast<double>(x.size()) + (keeps_ ? 1 : 0));
    for (Eigen::Index i = 0; i < x.size(); ++i) {
      if (random.uniform() >= often) continue;
      const Dimension& dimension = inputs_.dimensions()[static_cast<std::size_t>(i)];
      x[i] = dimension.is_category() ? dimension.options[random.below(dimension.options.size())]
                                     : moved(x[i], random.uniform());
    }
    return x;
  }

  // Deb's polynomial mutation within [0, 1].
  [[nodiscard]] static double moved(double x, double u) {
    const double power = 1 / (kSpread + 1);
    if (u < 0.5) {
      const double room = std::pow(1 - x, kSpread + 1);
      return x + std::pow(2 * u + (1 - 2 * u) * room, power) - 1;
    }
    const double room = std::pow(x, kSpread + 1);
    return x + 1 - std::pow(2 * (1 - u) + (2 * u - 1) * room, power);
  }

  trials::Space space_;
  std::uint64_t seed_;
  trials::Objectives objectives_;
  Nsga2Options options_;
  Inputs inputs_;
  std::unique_ptr<Sampler> startup_;
  Tried tried_;
  bool keeps_;  // this is a part of few values: a child may equal a parent and differ in another part
};

}  // namespace

std::unique_ptr<Sampler> make_nsga2(trials::Space space, std::uint64_t seed, const std::vector<trials::Goal>& goals,
                                    const Nsga2Options& options, Repeats repeats) {
  return std::make_unique<Nsga2>(std::move(space), seed, goals, options, repeats);
}

}  // namespace hfta::search
