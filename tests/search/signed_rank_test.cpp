// Against all choices of signs, counted one by one.
#include "search/signed_rank.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "base/random.hpp"

using namespace hfta::search;

namespace {

// Twice the sum of the ranks of the positive differences, zeros ranked and left out.
long doubled_sum(const std::vector<double>& differences) {
  long sum = 0;
  for (const double one : differences) {
    if (!(one > 0)) continue;
    for (const double other : differences) {
      sum += std::abs(other) < std::abs(one) ? 2 : std::abs(other) == std::abs(one) ? 1 : 0;
    }
    ++sum;
  }
  return sum;
}

double reference(std::vector<double> differences) {
  const long found = doubled_sum(differences);
  std::vector<std::size_t> signed_ones;
  for (std::size_t i = 0; i < differences.size(); ++i) {
    if (differences[i] != 0) signed_ones.push_back(i);
  }
  if (signed_ones.empty()) return 1;
  long as_much = 0;
  const std::size_t all = std::size_t{1} << signed_ones.size();
  for (std::size_t signs = 0; signs < all; ++signs) {
    for (std::size_t i = 0; i < signed_ones.size(); ++i) {
      double& one = differences[signed_ones[i]];
      one = (signs >> i & 1) != 0 ? std::abs(one) : -std::abs(one);
    }
    as_much += doubled_sum(differences) >= found ? 1 : 0;
  }
  return static_cast<double>(as_much) / static_cast<double>(all);
}

}  // namespace

TEST_CASE("the signed-rank test counts the choices of signs, with ties and zeros") {
  hfta::CountedRandom random(1, hfta::Stream::kSimulation, 0);
  for (int n = 1; n <= 12; ++n) {
    for (int i = 0; i < 40; ++i) {
      std::vector<double> differences;
      const bool tied = i % 2 == 0;
      for (int k = 0; k < n; ++k) {
        differences.push_back(tied ? static_cast<double>(random.below(7)) - 3 : random.normal() + 0.3);
      }
      INFO("n " << n << " case " << i);
      CHECK(signed_rank_p(differences) == Approx(reference(differences)).margin(1e-12));
    }
  }
}

TEST_CASE("known values of the signed-rank test") {
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(signed_rank_p({1, 2, 3, 4, 5}) == 1.0 / 32);
  CHECK(signed_rank_p({1, 2, 3, 4}) == 1.0 / 16);
  CHECK(signed_rank_p({-1, 2, 3, 4, 5}) == 2.0 / 32);
  CHECK(signed_rank_p({-1, -2, -3}) == 1.0);
  CHECK(signed_rank_p({0, 0, 0}) == 1.0);
  CHECK(signed_rank_p({}) == 1.0);
  CHECK(signed_rank_p({1e-300, 1e300, infinity, 5, 7}) == 1.0 / 32);
  CHECK(signed_rank_p({infinity, infinity, infinity, -1, -2}) == signed_rank_p({5, 5, 5, -1, -2}));
}

TEST_CASE("of many differences the normal distribution is near the exact one") {
  hfta::CountedRandom random(2, hfta::Stream::kSimulation, 0);
  std::vector<double> differences;
  for (int i = 0; i < 50; ++i) differences.push_back(random.normal() + 0.2);
  const double exact = signed_rank_p(differences);
  differences.push_back(1e-9);  // the 51st moves the sum of ranks by about one and every other rank by one
  CHECK(signed_rank_p(differences) == Approx(exact).epsilon(0.1));
  CHECK(signed_rank_p(std::vector<double>(1000, 1.0)) < 1e-100);
  CHECK(signed_rank_p(std::vector<double>(1000, -1.0)) == Approx(1.0));
}
