// Freeze-thaw's process over learning curves, against hand-worked and dense values, and what it sees of them.

#include "search/freeze_thaw/curves.hpp"

#include <Eigen/LU>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "search/freeze_thaw/curve_process.hpp"
#include "setting.hpp"

using namespace hfta;
using namespace hfta::search;
using namespace hfta::search::freeze_thaw;
using namespace hfta::search::freeze_thaw::testing;
using SeenCurve = hfta::search::freeze_thaw::Curve;
using Eigen::Index;
using trials::Goal;

namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();

double matern(double r) { return (1 + std::sqrt(5.0) * r + 5 * r * r / 3) * std::exp(-std::sqrt(5.0) * r); }

// `count` points of some trials, a few epochs each.
CurvePoints some_points(Index count, std::uint64_t seed) {
  CountedRandom random(seed, Stream::kSimulation, 0);
  CurvePoints points{Matrix(count, 2), Vector(count), {}};
  std::map<int, std::pair<double, double>> places;
  for (Index i = 0; i < count; ++i) {
    const int trial = static_cast<int>(i) / 3;
    if (!places.contains(trial)) places[trial] = {random.uniform(), random.uniform()};
    points.x.row(i) << places[trial].first, places[trial].second;
    points.epochs[i] = static_cast<double>(1 + i % 3 * 4);
    points.trial.push_back(trial);
  }
  return points;
}

Vector some_values(const CurvePoints& points) {
  Vector y = (4 * points.x.col(0)).array().sin() + points.x.col(1).array() - points.epochs.array().log() / 2;
  y.array() -= y.mean();
  return y / std::sqrt(y.squaredNorm() / static_cast<double>(y.size()));
}

CurvePoints joined(const CurvePoints& a, const CurvePoints& b) {
  CurvePoints all{Matrix(a.size() + b.size(), 2), Vector(a.size() + b.size()), a.trial};
  all.x << a.x, b.x;
  all.epochs << a.epochs, b.epochs;
  all.trial.insert(all.trial.end(), b.trial.begin(), b.trial.end());
  return all;
}

}  // namespace

TEST_CASE("covariances of two values of one trial, and of two trials, by hand") {
  const Inputs inputs(kPlane);
  CurvePoints points{Matrix(3, 2), Vector(3), {0, 0, 1}};
  points.x << 0.2, 0.5, 0.2, 0.5, 0.5, 0.9;  // the third is one length from the others
  points.epochs << 1, 4, 4;
  const Matrix k = CurveKernel(inputs, hyper()).between(points, points);
  const double m = matern(1), t = matern(std::log(4.0) / 0.7);
  CHECK(k(0, 0) == Approx(1 + 0.4 + 0.3 + 0.2 + 0.1));
  CHECK(k(0, 1) == Approx(1 + 0.4 * t + 0.3 * t + 0.2 * t + 0.1));
  CHECK(k(1, 2) == Approx(1 * m + 0.4 * m + 0.2));
  CHECK(k(0, 2) == Approx(1 * m + 0.4 * m * t + 0.2 * t));
  CHECK(CurveKernel(inputs, hyper()).variance() == Approx(2.0));
  points.trial = {kNoTrial, kNoTrial, 1};  // two trials that have not begun are two
  CHECK(CurveKernel(inputs, hyper()).between(points, points)(0, 1) == Approx(1 + 0.4 * t + 0.2 * t));
}

TEST_CASE("the density of curves' hyperparameters has the gradient that differences show") {
  const Inputs inputs(kPlane);
  const CurvePoints points = some_points(18, 3);
  const Vector y = some_values(points);
  Vector at_point(9), gradient, unused;
  at_point << -1.1, -0.6, 0.2, 0.1, -0.8, -2.5, -0.4, -4, -4.5;
  (void)negative_log_posterior(inputs, points, y, at_point, gradient);
  for (Index i = 0; i < at_point.size(); ++i) {
    Vector above = at_point, below = at_point;
    above[i] += 1e-5;
    below[i] -= 1e-5;
    const double slope = (negative_log_posterior(inputs, points, y, above, unused) -
                          negative_log_posterior(inputs, points, y, below, unused)) /
                         2e-5;
    INFO(i);
    CHECK(gradient[i] == Approx(slope).epsilon(1e-5).margin(1e-6));
  }
}

TEST_CASE("a forecast is the dense posterior, also where values are believed") {
  const Inputs inputs(kPlane);
  const CurvePoints known = some_points(12, 7);
  const Vector y = some_values(known);
  CurvePoints wanted = some_points(6, 8);
  for (int& trial : wanted.trial) trial += 2;  // of trials that are known, and of others
  wanted.trial[5] = kNoTrial;                  // what chance gives a new one does not count
  const CurveKernel kernel(inputs, hyper());
  const auto dense = [&](const CurvePoints& seen, const Vector& values) {
    Matrix covariance = kernel.between(seen, seen);
    covariance.diagonal().array() += 0.05 + 1e-6;
    const Matrix gain = covariance.inverse() * kernel.between(seen, wanted);
    const Matrix left = kernel.between(wanted, wanted) - kernel.between(seen, wanted).transpose() * gain;
    return std::pair<Vector, Vector>(gain.transpose() * values, left.diagonal());
  };
  CurveForecast forecast(inputs, hyper(), known, y, wanted);
  const auto [means, variances] = dense(known, y);
  CHECK((forecast.means() - means).norm() == Approx(0).margin(1e-9));
  CHECK((forecast.variances() - variances).norm() == Approx(0).margin(1e-9));
  Matrix covariance = kernel.between(known, known);
  const Matrix clean = covariance;
  covariance.diagonal().array() += 0.05 + 1e-6;
  CHECK(forecast.least_known() == Approx((clean * covariance.inverse() * y).minCoeff()).margin(1e-9));
  forecast.believe(4);
  const CurvePoints one{wanted.x.row(4), wanted.epochs.segment(4, 1), {wanted.trial[4]}};
  Vector more(y.size() + 1);
  more << y, means[4];
  const auto [same_means, narrower] = dense(joined(known, one), more);
  CHECK((forecast.means() - same_means).norm() == Approx(0).margin(1e-9));
  CHECK((forecast.variances() - narrower).norm() == Approx(0).margin(1e-9));
  const double before = forecast.variances()[5];
  forecast.believe(5);
  CHECK(forecast.variances()[5] < before);
  CHECK(forecast.variances()[5] > 0);  // another trial of this configuration may come to something else
}

TEST_CASE("of a curve the model sees some epochs, its best and its last, and never too many") {
  std::vector<double> values(20);
  for (int i = 0; i < 20; ++i) values[static_cast<std::size_t>(i)] = std::abs(i - 10) + 1;
  std::vector<SeenCurve> curves = {curve_of(0, Vector::Zero(2), values, false, Goal::kMinimize)};
  const CurveObservations few = observe(curves, 100);
  const std::vector<double> wanted = {1, 2, 3, 4, 6, 9, 11, 13, 19, 20};
  REQUIRE(few.points.size() == 10);
  for (Index i = 0; i < 10; ++i) CHECK(few.points.epochs[i] == wanted[static_cast<std::size_t>(i)]);
  for (int trial = 1; trial < 300; ++trial) {
    const auto epochs = static_cast<std::ptrdiff_t>(1 + trial % 20);
    curves.push_back(
        curve_of(trial, Vector::Constant(2, trial), {values.begin(), values.begin() + epochs}, false, Goal::kMinimize));
  }
  for (const std::size_t most : {2, 20, 160, 400, 700, 5000}) {
    const CurveObservations seen = observe(curves, most);
    CHECK(static_cast<std::size_t>(seen.points.size()) <= most);
    CHECK(seen.points.size() == seen.y.size());
  }
  const SeenCurve failed = curve_of(0, Vector::Zero(2), {3, 2, kNan, 1}, false, Goal::kMaximize);
  CHECK(failed.values == std::vector<double>{-3, -2});
  CHECK(failed.failed);
  CHECK(failed.ended);
}
