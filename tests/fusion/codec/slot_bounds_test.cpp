// When a slot's bounds are found, from what, and that its row says it all.
#include "fusion/codec/slot_bounds.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

namespace hfta::fusion {
namespace {

constexpr std::size_t kLayer = 1;
constexpr double kShare = 0.01;

const std::vector<float>& input() {
  static const std::vector<float> x = [] {
    std::vector<float> all(600);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<float>(std::sin(0.7 * static_cast<double>(i)));
    return all;
  }();
  return x;
}

// A net of one layer of 3 channels and 2 outputs.
class Slot {
 public:
  explicit Slot(std::int64_t interval) : interval_(interval), row(layout_.size(), 0) {}

  // The bound of a step whose outputs' sums are `squares`.
  float step(double squares, double wanted) {
    SlotBounds bounds(layout_, row, interval_);
    const float bound = bounds.bound(kLayer, {input(), 3}, 1, kShare);
    if (bounds.measures()) {
      measured.push_back(steps);
      const SlotBounds::Sums sums = bounds.sums(kLayer);
      std::fill(sums.squares.begin(), sums.squares.end(), squares);
      std::fill(sums.square_of_sums.begin(), sums.square_of_sums.end(), 0.0);
      *sums.positions = 200;
      bounds.set_wanted(kLayer, wanted);
    }
    bounds.end();
    ++steps;
    return bound;
  }

 private:
  BoundLayout layout_{{0, 2, 0}};
  std::int64_t interval_;

 public:
  std::vector<double> row;
  std::vector<int> measured;  // steps that measured
  int steps = 0;
};

}  // namespace

TEST_CASE("weights without a bound take no numbers") {
  const BoundLayout none({0, 0}), some({0, 5, 0, 2});
  CHECK(none.size() == 0);
  CHECK_FALSE(some.has(0));
  CHECK(some.has(3));
  constexpr std::size_t kNumbers = 7;  // of a layer, beside its sums by output channel
  CHECK(some.offset(3) + kNumbers + 2 * 2 == some.size());
}

TEST_CASE("a slot begins with what its input says, and then has what the step before says") {
  Slot slot(100);
  const SavedInput x{input(), 3};
  CHECK(slot.step(4, 0.5) == first_bound(x, kShare));
  const OutputSums outputs{4, 0, 200};
  CHECK(slot.step(400, 0.5) == bound_for(x, {&outputs, 1}, 0.5));
}

TEST_CASE("bounds stay while they do not move, and are found anew at once when they do") {
  Slot calm(8);
  for (int s = 0; s < 60; ++s) static_cast<void>(calm.step(4, 0.5));
  // A step that measures right behind another one is the beginning; then distances double to 8.
  std::vector<int> gaps;
  for (std::size_t i = 1; i < calm.measured.size(); ++i) gaps.push_back(calm.measured[i] - calm.measured[i - 1]);
  CHECK(std::is_sorted(gaps.begin(), gaps.end()));
  CHECK(gaps.back() == 8);
  Slot wild(8);
  double squares = 1;
  for (int s = 0; s < 60; ++s) static_cast<void>(wild.step(squares *= 100, 0.5));
  CHECK(wild.measured.size() > 3 * calm.measured.size());
}

namespace {

// A linear layer (0), a norm behind it (1), another layer (2) and another norm (3).
struct NormedSlot {
  BoundLayout layout{{2, 2, 2, 2}, {{1, {0}}, {3, {0, 1, 2}}}};
  std::vector<double> row = std::vector<double>(layout.size(), 0);

  // Runs a step in which each layer may be off by wanted[its place], and returns the second norm's bound.
  float step(const std::vector<double>& wanted) {
    SlotBounds bounds(layout, row, 1);
    for (const std::size_t norm : {1, 3}) bounds.set_coherence(norm, 0.25);
    const float bound = bounds.norm_bound(3, kShare);
    for (std::size_t w = 0; w < wanted.size(); ++w) {
      std::ranges::fill(bounds.sums(w).squares, 4.0);
      if (!layout.is_norm(w)) bounds.set_input(w, 9);
      bounds.set_wanted(w, wanted[w]);
    }
    for (const std::size_t norm : {1, 3}) bounds.set_gain(norm, 0.5);
    bounds.end();
    return bound;
  }
  float second_step(const std::vector<double>& wanted) {
    static_cast<void>(step(wanted));
    return step(wanted);
  }
};

}  // namespace

TEST_CASE("a norm's bound is what the gradient of its weight and those of the layers below it can take") {
  const double root = std::sqrt(3.0), gain = 0.5;
  // Two norms are above layer 0, one is above layer 2. An input's mean square is 9, a norm's 1; sums of squares are 4.
  const auto as_seen = [](double x) { return Approx(static_cast<double>(static_cast<float>(x))); };
  const double s = 0.01;
  CHECK(NormedSlot().second_step({s, 1, 1, 1}) == as_seen(root * s * kPassedOn / std::sqrt(2.0) / 6 / gain));
  CHECK(NormedSlot().second_step({1, 1, s, 1}) == as_seen(root * s * kPassedOn / 6 / gain));
  CHECK(NormedSlot().second_step({1, s, 1, 1}) == as_seen(root * s * kPassedOn / 2 / gain));
  CHECK(NormedSlot().second_step({1, 1, 1, s}) == as_seen(root * s / 2));
  CHECK(NormedSlot().second_step({1, 1, 1, 1}) == as_seen(kMostOfDeviation));
  CHECK(NormedSlot().second_step({1, 1, 0, 1}) == 0);
  const double sigma = kShare * std::sqrt(2 / 3.14159265358979);  // of gradients that are noise
  CHECK(NormedSlot().step({1, 1, 1, 1}) == as_seen(root * sigma * kPassedOn / std::sqrt(2.0) / std::sqrt(0.25)));
}

TEST_CASE("a row that is copied goes on as the other one") {
  for (int pause = 0; pause < 20; ++pause) {
    Slot one(5);
    for (int s = 0; s < pause; ++s) static_cast<void>(one.step(1 + s % 7, 0.5));
    Slot other(5);
    other.row = one.row;
    for (int s = pause; s < 40; ++s) CHECK(one.step(1 + s % 7, 0.5) == other.step(1 + s % 7, 0.5));
    CHECK(one.row == other.row);
  }
}

TEST_CASE("numbers that no step wrote give bounds that are in no way worse than none") {
  for (const double odd :
       {-3.0, 0.25, 1e300, -1e300, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    Slot slot(5);
    std::fill(slot.row.begin(), slot.row.end(), odd);
    for (int s = 0; s < 12; ++s) CHECK_NOTHROW(slot.step(4, 0.5));
    CHECK(slot.measured.size() >= 2);
    NormedSlot normed;
    std::fill(normed.row.begin(), normed.row.end(), odd);
    for (int s = 0; s < 12; ++s) CHECK_FALSE(std::isnan(normed.step({1, 1, 1, 1})));
  }
}

}  // namespace hfta::fusion
