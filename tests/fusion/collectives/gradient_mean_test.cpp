// The mean of what ranks have, by its weights.
#include "fusion/collectives/gradient_mean.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "as_ranks.hpp"
#include "base/random.hpp"

namespace hfta::fusion::testing {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Found {
  double loss = 0, weight = 0;
  std::vector<double> gradient;
};

// Of two slots whose ranks have those weights; a rank r has loss 1 + r and gradients (1 + r) * 10 + i. NaN where its
// weight is 0.
std::vector<std::vector<Found>> taken(const std::vector<std::vector<double>>& weights) {
  const auto ranks = weights.front().size();
  std::vector<std::vector<Found>> found(ranks);
  const auto thrown = as_ranks(static_cast<int>(ranks), [&](Collectives& group) {
    const auto r = static_cast<std::size_t>(group.rank());
    std::vector<std::vector<double>> memory(weights.size() * 2);
    std::vector<SlotMean<double>> slots(weights.size());
    for (std::size_t b = 0; b < slots.size(); ++b) {
      const bool counts = weights[b][r] != 0;
      slots[b].loss = counts ? 1.0 + static_cast<double>(r) : kNaN;
      slots[b].weight = weights[b][r];
      for (std::size_t part = 0; part < 2; ++part) {
        std::vector<double>& own = memory[2 * b + part];
        for (int i = 0; i < 3; ++i) own.push_back(counts ? 10.0 * (1.0 + static_cast<double>(r)) + i : kNaN);
        slots[b].gradients.emplace_back(own);
      }
    }
    std::vector<double> buffer;
    take_mean(group, slots, buffer);
    for (std::size_t b = 0; b < slots.size(); ++b) {
      found[r].push_back({slots[b].loss, slots[b].weight, memory[2 * b]});
      want(memory[2 * b] == memory[2 * b + 1] || std::isnan(memory[2 * b][0]), "equal gradients to have equal means");
    }
  });
  for (const std::string& error : thrown) CHECK(error.empty());
  return found;
}

}  // namespace

TEST_CASE("ranks take the mean of their gradients by weight, slot by slot") {
  const auto found = taken({{1, 3, 4}, {2, 0, 2}});
  for (const auto& rank : found) {
    CHECK(rank[0].weight == 8);
    CHECK(rank[0].loss == Approx((1 * 1 + 3 * 2 + 4 * 3) / 8.0).epsilon(1e-15));
    for (int i = 0; i < 3; ++i) {
      CHECK(rank[0].gradient[static_cast<std::size_t>(i)] ==
            Approx((10 * 1 + 20 * 3 + 30 * 4) / 8.0 + i).epsilon(1e-14));
    }
    CHECK(rank[1].weight == 4);
    CHECK(rank[1].loss == 2);
    CHECK(rank[1].gradient == std::vector<double>{20, 21, 22});
    CHECK(rank[0].gradient == found[0][0].gradient);
  }
}

TEST_CASE("the mean of nothing is no number, and everybody's") {
  for (const auto& rank : taken({{0, 0}, {1, 1}})) {
    CHECK(rank[0].weight == 0);
    CHECK(std::isnan(rank[0].loss));
    CHECK(std::isnan(rank[0].gradient[0]));
    CHECK(rank[1].gradient == std::vector<double>{15, 16, 17});
  }
}

TEST_CASE("gradients near the largest float32 have a mean, though no sum") {
  const auto thrown = as_ranks(2, [](Collectives& group) {
    std::vector<float> gradient = {3e38F};
    std::vector<SlotMean<float>> slots(1);
    slots[0].weight = 100;
    slots[0].gradients.emplace_back(gradient);
    std::vector<float> buffer;
    take_mean(group, slots, buffer);
    want(gradient[0] == 3e38F, "the mean of two equal numbers");
  });
  for (const std::string& error : thrown) CHECK(error.empty());
}

}  // namespace hfta::fusion::testing
