// Cross entropy's kernels, run on the CPU by fake/cuda_runtime.h, against sums written out in long double.
#include "fusion/cuda/loss_kernels.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "fusion/random/draws.hpp"

namespace hfta::fusion::cuda {
namespace {

constexpr int kSlots = 3;
constexpr std::int64_t kIgnored = -100;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <typename T>
struct Losses {
  std::vector<T> losses, log_sums, counted, gradients;
};

// Logits of three slots, every fifth position ignored.
template <typename T>
struct Case {
  std::size_t positions, classes;
  std::vector<T> x, weights;
  std::vector<std::int64_t> targets;
  std::vector<double> smoothing = {0, 0.1, 0.6};
  std::size_t target_stride;

  Case(std::size_t positions_of_slot, std::size_t all_classes)
      : positions(positions_of_slot),
        classes(all_classes),
        x(rows() * classes),
        weights(rows()),
        targets(rows()),
        target_stride(positions) {
    fill_normal(x.data(), x.size(), 1, 2, 3);
    for (T& value : x) value *= 5;
    fill_normal(weights.data(), weights.size(), 4, 5, 6);
    for (std::size_t p = 0; p < rows(); ++p) {
      targets[p] = p % 5 == 4 ? kIgnored : static_cast<std::int64_t>((p * 7) % classes);
    }
  }
  [[nodiscard]] std::size_t rows() const { return positions * kSlots; }
  [[nodiscard]] Logits<T> logits(bool one) const {
    return {x.data(), targets.data(), target_stride, kIgnored,
            kSlots,   positions,      classes,       one ? nullptr : smoothing.data(),
            0.2};
  }
};

template <typename T>
Losses<T> by_kernels(const Case<T>& all, bool one) {
  const T nan = std::numeric_limits<T>::quiet_NaN();
  Losses<T> out{std::vector<T>(all.rows(), nan), std::vector<T>(all.rows(), nan), std::vector<T>(all.rows(), nan),
                std::vector<T>(all.x.size(), nan)};
  cross_entropy(all.logits(one), out.losses.data(), out.log_sums.data(), out.counted.data(), nullptr);
  cross_entropy_backward(all.logits(one), out.log_sums.data(), {all.weights.data(), nullptr}, out.gradients.data(),
                         nullptr);
  return out;
}

template <typename T>
void compare(const Case<T>& all, bool one, double within) {
  const Losses<T> found = by_kernels(all, one);
  for (std::size_t p = 0; p < all.rows(); ++p) {
    const T* row = all.x.data() + p * all.classes;
    const long double e = one ? 0.2 : all.smoothing[p / all.positions];
    const auto classes = static_cast<long double>(all.classes);
    long double sum = 0, mean = 0;
    for (std::size_t k = 0; k < all.classes; ++k) sum += std::exp(static_cast<long double>(row[k]));
    const long double m = std::log(sum);
    for (std::size_t k = 0; k < all.classes; ++k) mean += (m - row[k]) / classes;
    const bool counts = all.targets[p] != kIgnored;
    CHECK(found.counted[p] == (counts ? 1 : 0));
    CHECK(found.log_sums[p] == Approx(static_cast<double>(m)).epsilon(within).margin(within));
    const long double loss = counts ? (1 - e) * (m - row[static_cast<std::size_t>(all.targets[p])]) + e * mean : 0.0L;
    CHECK(found.losses[p] == Approx(static_cast<double>(loss)).epsilon(within).margin(within));
    for (std::size_t k = 0; k < all.classes; ++k) {
      const long double own = static_cast<std::int64_t>(k) == all.targets[p] ? 1 - e : 0.0L;
      const long double slope = counts ? (std::exp(row[k] - m) - own - e / classes) * all.weights[p] : 0.0L;
      CHECK(found.gradients[p * all.classes + k] == Approx(static_cast<double>(slope)).margin(within));
    }
  }
}

}  // namespace

TEST_CASE("cross entropy's kernels give losses and gradients") {
  for (const std::size_t classes : {1, 2, 31, 32, 33, 100}) {
    for (const std::size_t positions : {1, 7, 20}) {
      for (const bool one : {false, true}) {
        CAPTURE(classes, positions, one);
        compare(Case<double>(positions, classes), one, 1e-13);
        compare(Case<float>(positions, classes), one, 2e-5);
      }
    }
  }
}

TEST_CASE("cross entropy's kernels keep what is infinite or NaN to its position") {
  Case<double> all(5, 40);
  const Losses<double> clean = by_kernels(all, false);
  all.x[0 * 40 + 3] = -kInfinity;     // of a slot without smoothing: a class that cannot be
  all.x[1 * 40 + 39] = std::nan("");  // in the last, short round of the lanes
  all.x[4 * 40 + 1] = kInfinity;      // ignored
  all.targets[2] = 40;                // no class
  all.targets[6] = -1;
  const Losses<double> found = by_kernels(all, false);
  CHECK(std::isfinite(found.losses[0]));
  CHECK(found.gradients[3] == 0);
  CHECK(std::isnan(found.losses[1]));
  CHECK(std::isnan(found.losses[2]));
  CHECK(found.losses[4] == 0);
  CHECK(
      std::all_of(found.gradients.begin() + 4 * 40, found.gradients.begin() + 5 * 40, [](double g) { return g == 0; }));
  CHECK(std::isnan(found.losses[6]));
  for (const std::size_t p : {3, 5, 7, 8, 10, 14}) CHECK(found.losses[p] == clean.losses[p]);
}

TEST_CASE("gradients of means are those of positions that count one over their number") {
  const Case<double> all(13, 40);
  std::vector<double> log_sums = by_kernels(all, false).log_sums, found(all.x.size()), wanted(all.x.size());
  const std::vector<double> slopes = {0.5, -2, 3}, totals = {10, 7, 4};
  std::vector<double> weights(all.rows());
  for (std::size_t p = 0; p < all.rows(); ++p) weights[p] = slopes[p / 13] / totals[p / 13];
  cross_entropy_backward(all.logits(false), log_sums.data(), {slopes.data(), totals.data()}, found.data(), nullptr);
  cross_entropy_backward(all.logits(false), log_sums.data(), {weights.data(), nullptr}, wanted.data(), nullptr);
  CHECK(found == wanted);
}

TEST_CASE("slots may have the same targets") {
  Case<double> all(20, 33);
  for (std::size_t p = 20; p < all.rows(); ++p) all.targets[p] = all.targets[p - 20];
  const Losses<double> wanted = by_kernels(all, false);
  all.targets.resize(20);
  all.target_stride = 0;
  const Losses<double> found = by_kernels(all, false);
  CHECK(found.losses == wanted.losses);
  CHECK(found.gradients == wanted.gradients);
}

TEST_CASE("means of losses are over what counts, in parts where there are many") {
  const std::size_t positions = GENERATE(0, 1, 255, 4096, 4097, 12289);
  CAPTURE(positions);
  std::vector<double> losses(2 * positions), counted(losses.size());
  fill_normal(losses.data(), losses.size(), 1, 2, 3);
  double sum = 0, count = 0;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    counted[i] = i % 3 == 2 ? 0 : 1;
    losses[i] = counted[i] * (losses[i] + 1);
    if (i >= positions) sum += losses[i], count += counted[i];
  }
  if (positions > 0) losses[0] = std::nan("");
  const double nan = std::nan("");
  std::vector<double> means(2, nan), totals(2, nan), workspace(loss_means_workspace(positions, 2), nan);
  loss_means(CountedLosses<double>{losses.data(), counted.data(), 2, positions}, means.data(), totals.data(),
             workspace.data(), nullptr);
  CHECK(totals[1] == count);
  CHECK(std::isnan(means[0]));
  if (positions == 0) {
    CHECK(std::isnan(means[1]));  // as LibTorch's mean of nothing
  } else {
    CHECK(means[1] == Approx(sum / count).epsilon(1e-12));
  }
}

TEST_CASE("losses are added to an epoch's sums by their weights") {
  const std::vector<double> losses = {1.5, std::nan(""), -2}, weights = {4, 0, 2};
  std::vector<double> sums = {10, 20, 30, 1, 2, 3};
  add_losses(StepLosses<double>{losses.data(), weights.data(), 1, 7, 3}, sums.data(), nullptr);
  CHECK(sums == std::vector<double>{16, 20, 26, 5, 2, 5});
  const std::vector<double> rest = {1.5, 1, -2};
  add_losses(StepLosses<double>{rest.data(), nullptr, 0, 8, 3}, sums.data(), nullptr);
  CHECK(sums == std::vector<double>{28, 28, 10, 13, 10, 13});
  add_losses(StepLosses<double>{rest.data(), weights.data(), 0, 8, 3}, sums.data(), nullptr);  // all have the first
  CHECK(sums == std::vector<double>{34, 32, 2, 17, 14, 17});
}

TEST_CASE("cross entropy of no positions launches nothing") {
  Case<float> none(0, 10);
  CHECK(by_kernels(none, false).losses.empty());
}

}  // namespace hfta::fusion::cuda
