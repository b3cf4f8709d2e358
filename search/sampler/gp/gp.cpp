#include <algorithm>
#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "search/sampler.hpp"
#include "search/sampler/gp/maximum.hpp"
#include "search/sampler/gp/observations.hpp"
#include "search/sampler/sobol_points.hpp"
#include "search/sampler/untried.hpp"

namespace hfta::search {
namespace {

using namespace gp;
using Eigen::Index;
using trials::Params;

constexpr std::size_t kMostObserved = 200;  // trials with a value that the model sees
constexpr std::size_t kSamples = 64;        // samples of the values that running trials will have
constexpr std::size_t kMostRunning = 64;    // running trials that the model sees, the latest
constexpr Index kGood = 4;                  // trials around which candidates are drawn
constexpr double kNothing = -100;           // logarithm of an improvement for which a Sobol point is the better draw
constexpr double kNear = 1e-4;              // distance, as a part of each range, below which a draw is no other one

// Number of candidates; fewer where more observations make each more expensive.
std::size_t candidates(Index observed) { return observed < 100 ? 768 : 384; }

class Gp final : public Sampler {
 public:
  Gp(trials::Space space, std::uint64_t seed, trials::Goal goal, const GpOptions& options, Repeats repeats)
      : space_(std::move(space)),
        seed_(seed),
        goal_(goal),
        options_(options),
        inputs_(space_),
        startup_(make_sobol(space_, seed, repeats)),
        tried_(space_, repeats),
        repeats_(repeats) {}

  [[nodiscard]] bool learns() const override { return true; }

  std::vector<Params> ask(int first, int k, const History& history, const Params& given) override {
    tried_.reset(history);
    const auto ended = std::count_if(history.begin(), history.end(), [](const SeenTrial& t) { return t.ended; });
    Observations seen;
    if (ended >= options_.startup_trials && inputs_.size() > 0) {
      seen = observe(inputs_, space_, history, goal_, kMostObserved);
    }
    std::vector<Params> asked;
    for (int i = 0; i < k; ++i) {
      std::optional<Params> drawn;
      if (seen.y.size() > 0) drawn = draw(first + i, seen, given);
      asked.push_back(drawn ? std::move(*drawn) : untried(*startup_, first + i, tried_, given));
      tried_.add(asked.back());
      if (seen.y.size() > 0) append(seen.running, inputs_.vector_of(asked.back()));
    }
    return asked;
  }

 private:
  static void append(Matrix& rows, const Vector& row) {
    rows.conservativeResize(rows.rows() + 1, row.size());
    rows.bottomRows(1) = row.transpose();
  }

  // The latest fit, kept because equal observations give an equal fit.
  struct Learnt {
    Matrix x, tried;
    Vector y, sign;
    Hyperparameters values;
    std::optional<Feasibility> feasibility;
  };

  const Learnt& learn(const Observations& seen) {
    const bool same = learnt_ && learnt_->x.rows() == seen.x.rows() && learnt_->tried.rows() == seen.tried.rows() &&
                      learnt_->x == seen.x && learnt_->y == seen.y && learnt_->tried == seen.tried &&
                      learnt_->sign == seen.sign;
    if (same) return *learnt_;
    learnt_ = Learnt{seen.x, seen.tried, seen.y, seen.sign, fit(inputs_, seen.x, seen.y), std::nullopt};
    if ((seen.sign.array() < 0).any()) {
      learnt_->feasibility.emplace(inputs_, seen.tried, seen.sign);
    }
    return *learnt_;
  }

  // Standard normal numbers, a row for each of `count`, a column for each sample.
  [[nodiscard]] Matrix normals(Index count, std::uint64_t number) const {
    const auto points =
        SobolPoints(static_cast<std::size_t>(count), seed_, Stream::kGp, 3 * number).points(0, kSamples);
    Matrix normal(count, static_cast<Index>(kSamples));
    for (Index sample = 0; sample < normal.cols(); ++sample) {
      for (Index i = 0; i < count; ++i) {
        const double u = points[static_cast<std::size_t>(sample)][static_cast<std::size_t>(i)];
        normal(i, sample) = std::numbers::sqrt2 * boost::math::erf_inv(2 * std::clamp(u, 1e-16, 1 - 1e-16) - 1);
      }
    }
    return normal;
  }

  std::optional<Params> draw(int draw, const Observations& seen, const Params& given) {
    const auto number = static_cast<std::uint64_t>(draw);
    const Learnt& learnt = learn(seen);
    const Matrix running =
        seen.running.bottomRows(std::min<Index>(seen.running.rows(), static_cast<Index>(kMostRunning)));
    const Acquisition acquisition = make_acquisition(inputs_, learnt.values, seen.x, seen.y, running,
                                                     normals(running.rows(), number), learnt.feasibility);
    const SobolPoints cube(static_cast<std::size_t>(inputs_.size()), seed_, Stream::kGp, 3 * number + 1);
    CountedRandom random(seed_, Stream::kGp, 3 * number + 2);
    const auto allowed = [&](const Vector& x) {
      return !is_near(seen.tried, x) && !is_near(seen.running, x) && !tried_.contains(inputs_.params_at(x));
    };
    const auto best = maximize(inputs_, acquisition, {cube.points(0, candidates(seen.x.rows())), good(seen)},
                               inputs_.numbers_of(given), random, allowed);
    if (!best || acquisition.at(*best, nullptr) < kNothing) return std::nullopt;
    return inputs_.params_at(*best);
  }

  // Whether one of the rows is a configuration beside which another teaches next to nothing. Without this, a best value
  // at an end of a range would be drawn again and again.
  [[nodiscard]] bool is_near(const Matrix& rows, const Vector& x) const {
    if (repeats_ == Repeats::kAllowed) return false;
    for (Index row = 0; row < rows.rows(); ++row) {
      bool near = true;
      for (Index i = 0; i < x.size() && near; ++i) {
        const double most = inputs_.dimensions()[static_cast<std::size_t>(i)].is_category() ? 0 : kNear;
        near = std::abs(rows(row, i) - x[i]) <= most;
      }
      if (near) return true;
    }
    return false;
  }

  [[nodiscard]] static Matrix good(const Observations& seen) {
    std::vector<Index> order(static_cast<std::size_t>(seen.y.size()));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return seen.y[a] < seen.y[b]; });
    Matrix rows(std::min(kGood, seen.y.size()), seen.x.cols());
    for (Index i = 0; i < rows.rows(); ++i) rows.row(i) = seen.x.row(order[static_cast<std::size_t>(i)]);
    return rows;
  }

  trials::Space space_;
  std::uint64_t seed_;
  trials::Goal goal_;
  GpOptions options_;
  Inputs inputs_;
  std::unique_ptr<Sampler> startup_;
  Tried tried_;
  Repeats repeats_;
  std::optional<Learnt> learnt_;
};

}  // namespace

std::unique_ptr<Sampler> make_gp(trials::Space space, std::uint64_t seed, trials::Goal goal, const GpOptions& options,
                                 Repeats repeats) {
  return std::make_unique<Gp>(std::move(space), seed, goal, options, repeats);
}

}  // namespace hfta::search
