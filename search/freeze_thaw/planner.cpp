#include "search/freeze_thaw/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/random.hpp"
#include "search/sampler/gp/feasibility.hpp"
#include "search/sampler/gp/maximum.hpp"
#include "search/sampler/gp/normal.hpp"
#include "search/sampler/sobol_points.hpp"

namespace hfta::search::freeze_thaw {
namespace {

using Eigen::Index;

constexpr std::size_t kMostObserved = 160;  // values that forecasts are made from
constexpr std::size_t kMostFitted = 80;     // values that hyperparameters are fitted to
constexpr std::size_t kMostTried = 60;      // trials that tell where others fail
constexpr std::size_t kCube = 192;          // new configurations of the whole space that are weighed
constexpr int kSome = 8;                    // picks that tell whose turn it is: which trials may train side by side
constexpr std::size_t kGood = 6;            // best trials, around which further ones are weighed
// Nearer ones would hardly differ: what chance gives two trials of one configuration is more.
constexpr gp::Reach kReach = {-1, -0.5};

std::uint64_t values_in(const std::vector<Curve>& curves) {
  return std::accumulate(curves.begin(), curves.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const Curve& curve) { return sum + curve.values.size(); });
}

// The configurations with the best values.
Matrix good_ones(const std::vector<Curve>& curves, Index dimensions) {
  std::vector<std::pair<double, const Curve*>> ranked;
  for (const Curve& curve : curves) {
    if (!curve.values.empty()) ranked.emplace_back(curve.least(), &curve);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  Matrix rows(static_cast<Index>(std::min(kGood, ranked.size())), dimensions);
  for (Index i = 0; i < rows.rows(); ++i) rows.row(i) = ranked[static_cast<std::size_t>(i)].second->x.transpose();
  return rows;
}

std::optional<gp::Feasibility> feasibility_of(const Inputs& inputs, const std::vector<Curve>& curves) {
  if (std::none_of(curves.begin(), curves.end(), [](const Curve& curve) { return curve.failed; })) return std::nullopt;
  const std::size_t count = std::min(curves.size(), kMostTried);
  Matrix x(static_cast<Index>(count), inputs.size());
  Vector sign(static_cast<Index>(count));
  for (std::size_t i = 0; i < count; ++i) {
    const Curve& curve = curves[i * curves.size() / count];
    x.row(static_cast<Index>(i)) = curve.x.transpose();
    sign[static_cast<Index>(i)] = curve.failed ? -1 : 1;
  }
  if (sign.minCoeff() > 0) return std::nullopt;  // those that failed were left out
  return gp::Feasibility(inputs, x, sign);
}

}  // namespace

bool has_begun(const std::vector<Curve>& curves, const FreezeThawOptions& options) {
  return std::count_if(curves.begin(), curves.end(), [](const Curve& curve) { return !curve.values.empty(); }) >=
         options.startup_trials;
}

Planner::Planner(const trials::Space& space, const std::set<std::string>& splitting, std::uint64_t seed,
                 const FreezeThawOptions& options)
    : space_(space), inputs_(space), seed_(seed), options_(options) {
  if (options.max_epochs < 1 || options.startup_trials < 1 || options.slots < 0 || options.eta < 2 ||
      options.random_percent < 0 || options.random_percent > 100) {
    throw Error(
        ErrorKind::kConfig,
        fmt::format("freeze_thaw: found max_epochs {}, startup_trials {}, slots {}, eta {} and random_percent "
                    "{}, wanted at least 1, 1, 0 and 2, and 0 to 100",
                    options.max_epochs, options.startup_trials, options.slots, options.eta, options.random_percent));
  }
  for (Index i = 0; i < inputs_.size(); ++i) {
    const Dimension& dimension = inputs_.dimensions()[static_cast<std::size_t>(i)];
    if (splitting.contains(space_[dimension.parameter].name)) splitting_.push_back(i);
  }
}

Vector Planner::vector_of(const trials::Params& params) const {
  trials::Params whole =
      inputs_.params_at(inputs_.from_cube(std::vector<double>(static_cast<std::size_t>(inputs_.size()), 0.5)));
  for (auto& [name, value] : whole) {
    if (const trials::ParamValue* found = trials::find_value(params, name)) value = *found;
  }
  return inputs_.vector_of(whole);
}

bool Planner::is_like(const Vector& a, const Vector& b) const {
  return std::all_of(splitting_.begin(), splitting_.end(), [&](Index i) { return a[i] == b[i]; });
}

// The next points of the study's one sequence (its points keep away from each other) that no trial has. A trial that
// had to share splitting parameters with others keeps the rest of its point, so that its continuous parameters tell
// which point it was. The sequence goes on where that of the first trials ends (make_sobol()), unless the space has
// parameters that are no inputs.
std::vector<Vector> Planner::next_in_sequence(const std::vector<Curve>& curves) const {
  constexpr double kSame = 1e-9;
  constexpr std::size_t kRun = 64;
  Vector matters = Vector::Ones(inputs_.size());
  for (const Index i : splitting_) matters[i] = 0;
  const std::vector<Dimension>& dimensions = inputs_.dimensions();
  bool tells = false;
  for (Index i = 0; i < inputs_.size(); ++i) {
    tells |= matters[i] > 0 && dimensions[static_cast<std::size_t>(i)].is_continuous();
  }
  if (!tells) matters.setOnes();
  const auto is_new = [&](const Vector& x) {
    return std::none_of(curves.begin(), curves.end(), [&](const Curve& curve) {
      return (x - curve.x).cwiseProduct(matters).cwiseAbs().maxCoeff() < kSame;
    });
  };
  const SobolPoints sequence(static_cast<std::size_t>(inputs_.size()), seed_, Stream::kSobol);
  std::vector<Vector> next;
  // Points of a finite space repeat configurations, and all of them may have been tried.
  const std::size_t most = curves.size() + 4 * kCube;
  for (std::size_t first = 0; first < most && next.size() < kCube; first += kRun) {
    for (const std::vector<double>& point : sequence.points(first, kRun)) {
      Vector x = vector_of(inputs_.params_at(inputs_.from_cube(point)));
      if (next.size() < kCube && is_new(x)) next.push_back(std::move(x));
    }
  }
  return next;
}

Candidates Planner::candidates_of(const std::vector<Curve>& curves, const std::vector<Vector>& sequence,
                                  std::uint64_t number, const Vector* like,
                                  const std::function<bool(const Vector&)>& allowed) const {
  Candidates all;
  for (const Curve& curve : curves) {
    if (curve.ended || curve.values.empty() || (like != nullptr && !is_like(curve.x, *like))) continue;
    all.add({curve.trial, curve.x}, static_cast<int>(curve.values.size()), curve.least());
  }
  all.waiting = all.picks.size();
  const auto add_new = [&](Vector x) {
    for (const Index i : splitting_) x[i] = like != nullptr ? (*like)[i] : x[i];
    if (allowed(x)) all.add({kNoTrial, std::move(x)}, 0, std::numeric_limits<double>::infinity());
  };
  for (const Vector& x : sequence) add_new(x);
  all.sequence = all.size() - all.waiting;
  CountedRandom random(seed_, Stream::kFreezeThaw, 2 * number + 1, 0);
  for (Vector& x : gp::neighbours(inputs_, good_ones(curves, inputs_.size()), kReach, random)) add_new(std::move(x));
  return all;
}

std::vector<Pick> Planner::plan(const std::vector<Curve>& curves, const Request& request,
                                const std::function<bool(const Vector&)>& allowed) const {
  const CurveObservations fitted = observe(curves, kMostFitted), seen = observe(curves, kMostObserved);
  const CurveHyperparameters hyper = fit(inputs_, fitted.points, fitted.y);
  const std::optional<gp::Feasibility> feasibility = feasibility_of(inputs_, curves);
  const std::uint64_t number = values_in(curves);
  const std::vector<Vector> sequence = next_in_sequence(curves);
  const auto picks_like = [&](const Vector* like, const Request& wanted) {
    Candidates from = candidates_of(curves, sequence, number, like, allowed);
    const auto count = static_cast<Index>(from.size());
    CurvePoints ends{Matrix(count, inputs_.size()), Vector::Constant(count, options_.max_epochs), {}};
    Vector feasible = Vector::Zero(count);
    for (Index i = 0; i < count; ++i) {
      const Pick& pick = from.picks[static_cast<std::size_t>(i)];
      ends.x.row(i) = pick.x.transpose();
      ends.trial.push_back(pick.trial);
    }
    if (feasibility) {
      const auto fresh = count - static_cast<Index>(from.waiting);
      feasible.tail(fresh) = gp::kCaution * feasibility->at(ends.x.bottomRows(fresh));
    }
    return Dealer(std::move(from), CurveForecast(inputs_, hyper, seen.points, seen.y, std::move(ends)),
                  std::move(feasible), options_, CountedRandom(seed_, Stream::kFreezeThaw, 2 * number + 1, 1))
        .deal(number, wanted);
  };
  if (splitting_.empty()) return picks_like(nullptr, request);
  // Slots train one kind of trial at a time: that of a pick chosen at random, so that in the long run each kind gets
  // its share. The choice is the same for every request, so that a sampler draws what a scheduler picked.
  const int room = request.room > 0 ? std::numeric_limits<int>::max() : 0;
  const std::vector<Pick> some = picks_like(nullptr, {.slots = kSome, .room = room});
  if (some.empty()) return {};
  CountedRandom random(seed_, Stream::kFreezeThaw, 2 * number + 1, 2);
  const Vector like = some[random.below(some.size())].x;
  return picks_like(&like, request);
}

}  // namespace hfta::search::freeze_thaw
