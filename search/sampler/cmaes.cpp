#include <Eigen/Eigenvalues>
#include <algorithm>
#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <numbers>
#include <utility>

#include "base/random.hpp"
#include "search/sampler.hpp"
#include "search/sampler/given.hpp"
#include "search/sampler/inputs.hpp"
#include "search/sampler/rank.hpp"
#include "search/sampler/sobol_points.hpp"
#include "search/sampler/untried.hpp"

namespace hfta::search {
namespace {

using Eigen::Index;
using trials::Params;

constexpr double kFirstStep = 0.2;   // sigma at the beginning, on the unit scale
constexpr double kLeastStep = 1e-9;  // a search that is this narrow begins anew elsewhere
constexpr int kMostResampled = 100;  // draws until one lies within the bounds; then it is put there

double tail_quantile(double probability) {  // z with that probability above
  return std::numbers::sqrt2 * boost::math::erfc_inv(2 * probability);
}
double tail(double z) { return std::erfc(z / std::numbers::sqrt2) / 2; }

// Numbers that follow from the dimensions and the size of a generation (Hansen, table 1).
struct Constants {
  Constants(Index dimensions, std::size_t population) {
    const auto d = static_cast<double>(dimensions);
    const std::size_t parents = population / 2;
    weights = Vector(static_cast<Index>(parents));
    for (Index i = 0; i < weights.size(); ++i) {
      weights[i] = std::log((static_cast<double>(population) + 1) / 2) - std::log(static_cast<double>(i) + 1);
    }
    weights /= weights.sum();
    effective = 1 / weights.squaredNorm();
    step_rate = (effective + 2) / (d + effective + 5);
    step_damping = 1 + 2 * std::max(0.0, std::sqrt((effective - 1) / (d + 1)) - 1) + step_rate;
    path_rate = (4 + effective / d) / (d + 4 + 2 * effective / d);
    rank_one = 2 / ((d + 1.3) * (d + 1.3) + effective);
    rank_many = std::min(1 - rank_one, 2 * (effective - 2 + 1 / effective) / ((d + 2) * (d + 2) + effective));
    length = std::sqrt(d) * (1 - 1 / (4 * d) + 1 / (21 * d * d));
  }
  Vector weights;
  double effective, step_rate, step_damping, path_rate, rank_one, rank_many, length;
};

// A normal distribution over numbers and one over the values of each category, and what moves them.
struct State {
  Vector mean, step_path, path, margin;  ///< `margin`: by how much each axis is widened.
  Matrix covariance, root, inverse_root;
  double step = kFirstStep;
  std::vector<Vector> shares;  ///< Probabilities of each category's options.
  int generation = 0;
};

class Cmaes final : public Sampler {
 public:
  Cmaes(trials::Space space, std::uint64_t seed, trials::Goal goal, const CmaesOptions& options, Repeats repeats)
      : space_(std::move(space)),
        seed_(seed),
        goal_(goal),
        inputs_(space_),
        startup_(make_sobol(space_, seed, repeats)),
        tried_(space_, repeats),
        starts_(static_cast<std::size_t>(inputs_.size()), seed, Stream::kCmaes) {
    for (Index i = 0; i < inputs_.size(); ++i) (dimension(i).is_category() ? categories_ : numbers_).push_back(i);
    const double d = std::max(1.0, static_cast<double>(inputs_.size()));
    population_ = options.population > 0 ? static_cast<std::size_t>(std::max(options.population, 4))
                                         : static_cast<std::size_t>(4 + std::floor(3 * std::log(d)));
  }

  [[nodiscard]] bool learns() const override { return true; }

  std::vector<Params> ask(int first, int k, const History& history, const Params& given) override {
    tried_.reset(history);
    if (inputs_.size() > 0) state_ = state_after(history);
    return in_turn(k, tried_, [&](int i) {
      return inputs_.size() > 0 ? draw(first + i, given) : untried(*startup_, first + i, tried_, given);
    });
  }

 private:
  [[nodiscard]] const Dimension& dimension(Index i) const { return inputs_.dimensions()[static_cast<std::size_t>(i)]; }

  struct Ranked {
    Rank rank;
    Vector x;
  };

  // Trials that ended, in the order of their draws, are the generations: so many, then so many more. So the
  // distribution is a function of the history alone, whichever trials end first.
  [[nodiscard]] State state_after(const History& history) const {
    const auto d = static_cast<Index>(numbers_.size());
    const Constants constants(std::max<Index>(d, 1), population_);
    int starts = 0;
    State state = begin(starts++);
    std::vector<Ranked> generation;
    for (const SeenTrial& trial : history) {
      if (!trial.ended || trial.params.size() != space_.size()) continue;
      generation.push_back({rank_of(trial, goal_), inputs_.vector_of(trial.params)});
      if (generation.size() < population_) continue;
      std::stable_sort(generation.begin(), generation.end(),
                       [](const Ranked& a, const Ranked& b) { return a.rank < b.rank; });
      // A generation whose parents have failed teaches no direction.
      if (!generation[static_cast<std::size_t>(constants.weights.size()) - 1].rank.has_failed()) {
        learn_numbers(generation, constants, state);
        learn_categories(generation, constants, state);
      }
      generation.clear();
      if (d > 0 && state.step * state.root.diagonal().cwiseAbs().maxCoeff() < kLeastStep) state = begin(starts++);
    }
    return state;
  }

  // The state that a search begins with: the first in the middle, the next ones elsewhere.
  [[nodiscard]] State begin(int start) const {
    const auto d = static_cast<Index>(numbers_.size());
    State state;
    state.mean = Vector::Constant(d, 0.5);
    if (start > 0) {
      const std::vector<double> point = starts_.points(static_cast<std::uint64_t>(start), 1).front();
      for (Index i = 0; i < d; ++i) state.mean[i] = point[static_cast<std::size_t>(i)];
    }
    state.step_path = state.path = Vector::Zero(d);
    state.margin = Vector::Ones(d);
    state.covariance = state.root = state.inverse_root = Matrix::Identity(d, d);
    for (const Index i : categories_) {
      const auto count = static_cast<Index>(dimension(i).options.size());
      state.shares.push_back(Vector::Constant(count, 1 / static_cast<double>(count)));
    }
    return state;
  }

  void learn_numbers(const std::vector<Ranked>& generation, const Constants& c, State& state) const {
    const auto d = static_cast<Index>(numbers_.size());
    if (d == 0) return;
    Matrix steps(d, c.weights.size());
    for (Index p = 0; p < c.weights.size(); ++p) {
      for (Index i = 0; i < d; ++i) {
        const double x = generation[static_cast<std::size_t>(p)].x[numbers_[static_cast<std::size_t>(i)]];
        steps(i, p) = (x - state.mean[i]) / (state.step * state.margin[i]);
      }
    }
    const Vector moved = steps * c.weights;
    state.mean += state.step * state.margin.cwiseProduct(moved);
    state.step_path = (1 - c.step_rate) * state.step_path +
                      std::sqrt(c.step_rate * (2 - c.step_rate) * c.effective) * (state.inverse_root * moved);
    const double norm = state.step_path.norm();
    const double decayed = std::sqrt(1 - std::pow(1 - c.step_rate, 2 * (++state.generation)));
    const bool steady = norm / decayed < (1.4 + 2 / (static_cast<double>(d) + 1)) * c.length;
    state.path = (1 - c.path_rate) * state.path;
    if (steady) state.path += std::sqrt(c.path_rate * (2 - c.path_rate) * c.effective) * moved;
    const double lost = steady ? 0 : c.rank_one * c.path_rate * (2 - c.path_rate);
    state.covariance = (1 - c.rank_one - c.rank_many + lost) * state.covariance +
                       c.rank_one * state.path * state.path.transpose() +
                       c.rank_many * steps * c.weights.asDiagonal() * steps.transpose();
    state.step *= std::exp(std::min(1.0, c.step_rate / c.step_damping * (norm / c.length - 1)));
    state.step = std::min(state.step, 1.0);
    take_root(state);
    widen(state);
  }

  static void take_root(State& state) {
    const Eigen::SelfAdjointEigenSolver<Matrix> solver((state.covariance + state.covariance.transpose()) / 2);
    const Vector deviations = solver.eigenvalues().cwiseMax(1e-20).cwiseSqrt();
    const Matrix& axes = solver.eigenvectors();
    state.root = axes * deviations.asDiagonal() * axes.transpose();
    state.inverse_root = axes * deviations.cwiseInverse().asDiagonal() * axes.transpose();
  }

  // Steps keep a probability of leaving the one that the mean is on: Hamano, Saito, Nomura and Shirakawa, "CMA-ES with
  // Margin", GECCO 2022, section 4: alpha = 1 / (dimensions x population).
  void widen(State& state) const {
    const double alpha = 1 / static_cast<double>(inputs_.size() * static_cast<Index>(population_));
    for (Index i = 0; i < state.mean.size(); ++i) {
      const Dimension& axis = dimension(numbers_[static_cast<std::size_t>(i)]);
      state.mean[i] = std::clamp(state.mean[i], 0.0, 1.0);
      if (!axis.rounds) continue;
      const UnitScale::Part here = axis.scale->part_of(axis.scale->at(state.mean[i]));
      const double deviation = state.step * std::sqrt(state.covariance(i, i)) * state.margin[i];
      const double below = tail((state.mean[i] - here.from) / deviation);
      const double above = tail((here.to - state.mean[i]) / deviation);
      const bool first = here.from <= 0, last = here.to >= 1;
      if (first && last) continue;
      if (first || last) {  // the mean moves towards the only neighbour
        const double far = deviation * tail_quantile(std::clamp(first ? above : below, alpha, 0.5));
        state.mean[i] = first ? std::max(state.mean[i], here.to - far) : std::min(state.mean[i], here.from + far);
        continue;
      }
      if (below >= alpha / 2 && above >= alpha / 2) continue;
      const double z_below = tail_quantile(std::clamp(below, alpha / 2, 0.5));
      const double z_above = tail_quantile(std::clamp(above, alpha / 2, 0.5));
      const double wanted = (here.to - here.from) / (z_below + z_above);
      state.mean[i] = here.from + wanted * z_below;
      state.margin[i] *= wanted / deviation;
    }
  }

  // A category's shares move to those of the parents; none falls below the margin of Hamano, Saito, Nomura, Uchida and
  // Shirakawa, "CatCMA", GECCO 2024.
  void learn_categories(const std::vector<Ranked>& generation, const Constants& c, State& state) const {
    constexpr double kRate = 0.3;
    for (std::size_t n = 0; n < categories_.size(); ++n) {
      const std::vector<double>& options = dimension(categories_[n]).options;
      Vector seen = Vector::Zero(state.shares[n].size());
      for (Index p = 0; p < c.weights.size(); ++p) {
        const double x = generation[static_cast<std::size_t>(p)].x[categories_[n]];
        const auto found = std::find(options.begin(), options.end(), x);
        if (found != options.end()) seen[found - options.begin()] += c.weights[p];
      }
      const double count = static_cast<double>(options.size());
      const double least = (1 - std::pow(0.73, 1 / static_cast<double>(categories_.size()))) / (count - 1);
      Vector& shares = state.shares[n];
      shares = (1 - kRate) * shares + kRate * seen;
      shares =
          (1 - std::min(1.0, least * count)) * shares + Vector::Constant(shares.size(), std::min(least, 1 / count));
      shares /= shares.sum();
    }
  }

  [[nodiscard]] Params draw(int number, const Params& given) {
    CountedRandom random(seed_, Stream::kCmaes, static_cast<std::uint64_t>(number), 1);
    for (int i = 0; i < kMostResampled; ++i) {
      Params params = with_given(inputs_.params_at(sample(random)), given);
      if (!tried_.contains(params)) return params;
    }
    return untried(*startup_, number, tried_, given);
  }

  [[nodiscard]] Vector sample(CountedRandom& random) const {
    Vector x(inputs_.size()), normal(state_.mean.size());
    Vector numbers = state_.mean;
    for (int tries = 0; tries < kMostResampled; ++tries) {
      for (double& z : normal) z = random.normal();
      numbers = state_.mean + state_.step * state_.margin.cwiseProduct(state_.root * normal);
      if ((numbers.array() >= 0).all() && (numbers.array() <= 1).all()) break;
    }
    for (Index i = 0; i < numbers.size(); ++i) x[numbers_[static_cast<std::size_t>(i)]] = numbers[i];
    for (std::size_t n = 0; n < categories_.size(); ++n) {
      double u = random.uniform();
      Index chosen = 0;
      while (chosen + 1 < state_.shares[n].size() && u >= state_.shares[n][chosen]) u -= state_.shares[n][chosen++];
      x[categories_[n]] = dimension(categories_[n]).options[static_cast<std::size_t>(chosen)];
    }
    return inputs_.rounded(std::move(x));
  }

  trials::Space space_;
  std::uint64_t seed_;
  trials::Goal goal_;
  Inputs inputs_;
  std::unique_ptr<Sampler> startup_;
  Tried tried_;
  SobolPoints starts_;
  std::vector<Index> numbers_, categories_;
  std::size_t population_ = 0;
  State state_;  // the state after the history of the latest call
};

}  // namespace

std::unique_ptr<Sampler> make_cmaes(trials::Space space, std::uint64_t seed, trials::Goal goal,
                                    const CmaesOptions& options, Repeats repeats) {
  return std::make_unique<Cmaes>(std::move(space), seed, goal, options, repeats);
}

}  // namespace hfta::search
