// Scrambled Sobol points, and the sampler that draws them.

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "search/sampler.hpp"
#include "search/sampler/sobol_points.hpp"
#include "tests/trials/distributions.hpp"

using namespace hfta;
using namespace hfta::search;
using namespace hfta::trials::testing;
using Kind = DistributionKind;

namespace {

using Cube = std::vector<std::vector<double>>;

std::size_t slice(double x, std::size_t slices) { return static_cast<std::size_t>(x * static_cast<double>(slices)); }

}  // namespace

TEST_CASE("of every aligned run of 2^m points each of 2^m slices of every axis has one") {
  constexpr std::size_t kAxes = 9;
  for (const std::uint64_t seed : {0, 1, 77}) {
    const Cube all = SobolPoints(kAxes, seed, Stream::kSobol).points(0, 256);
    for (std::size_t run = 1; run <= 256; run *= 2) {
      for (std::size_t from = 0; from < 256; from += run) {
        for (std::size_t axis = 0; axis < kAxes; ++axis) {
          std::set<std::size_t> slices;
          for (std::size_t i = 0; i < run; ++i) slices.insert(slice(all[from + i][axis], run));
          REQUIRE(slices.size() == run);
        }
      }
    }
  }
}

TEST_CASE("the first two axes are a (0,2)-sequence: each box of area 2^-m has one of every aligned run of 2^m") {
  const Cube all = SobolPoints(2, 5, Stream::kSobol).points(0, 256);
  for (std::size_t wide = 1; wide <= 64; wide *= 2) {
    const std::size_t high = 64 / wide;
    for (std::size_t from = 0; from < 256; from += 64) {
      std::set<std::pair<std::size_t, std::size_t>> boxes;
      for (std::size_t i = from; i < from + 64; ++i) boxes.emplace(slice(all[i][0], wide), slice(all[i][1], high));
      CHECK(boxes.size() == 64);
    }
  }
}

TEST_CASE("points are a function of seed, stream, item and place, also where there are no direction numbers") {
  for (const std::size_t axes : {std::size_t{1}, std::size_t{6}, std::size_t{3670}}) {
    const SobolPoints points(axes, 3, Stream::kSobol, 4);
    const Cube all = points.points(0, 20);
    for (const std::size_t first : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{13}}) {
      CHECK(points.points(first, 7) == Cube(all.begin() + static_cast<std::ptrdiff_t>(first),
                                            all.begin() + static_cast<std::ptrdiff_t>(first) + 7));
    }
    CHECK(SobolPoints(axes, 4, Stream::kSobol, 4).points(0, 20) != all);
    CHECK(SobolPoints(axes, 3, Stream::kGp, 4).points(0, 20) != all);
    CHECK(SobolPoints(axes, 3, Stream::kSobol, 5).points(0, 20) != all);
    for (const std::vector<double>& point : all) {
      CHECK(point.size() == axes);
      CHECK(std::all_of(point.begin(), point.end(), [](double x) { return x >= 0 && x < 1; }));
    }
  }
  CHECK(SobolPoints(0, 3, Stream::kSobol).points(0, 2) == Cube(2));
}

TEST_CASE("over seeds every point is uniform, the first one too") {
  constexpr int kSeeds = 4000;
  for (const std::size_t place : {0, 1, 6}) {
    double mean = 0, square = 0, product = 0;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      const std::vector<double> point = SobolPoints(2, seed, Stream::kSobol).points(place, 1).front();
      mean += point[0] / kSeeds;
      square += point[1] * point[1] / kSeeds;
      product += (point[0] - 0.5) * (point[1] - 0.5) / kSeeds;
    }
    CHECK(mean == Approx(0.5).margin(0.02));
    CHECK(square == Approx(1.0 / 3).margin(0.02));
    CHECK(product == Approx(0).margin(0.006));
  }
}

TEST_CASE("a mean over Sobol draws is nearer to the integral than one over random draws") {
  const trials::Space space = {{"a", bounded(Kind::kUniform, 0, 1)},
                               {"b", bounded(Kind::kLogUniformValues, 1, std::exp(1.0))},
                               {"c", normal(Kind::kNormal, 0, 1)}};
  // E[(a - 1/2)^2 + log b + c^2] = 1/12 + 1/2 + 1
  const auto off = [&](Sampler& sampler) {
    double sum = 0;
    for (const trials::Params& p : sampler.ask(0, 256, {})) {
      const double a = std::get<double>(p[0].second), b = std::get<double>(p[1].second),
                   c = std::get<double>(p[2].second);
      sum += (a - 0.5) * (a - 0.5) + std::log(b) + c * c;
    }
    return std::pow(sum / 256 - 19.0 / 12, 2);
  };
  double sobol = 0, random = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    sobol += off(*make_sobol(space, seed));
    random += off(*make_random(space, seed));
  }
  CHECK(sobol < 0.1 * random);
}

TEST_CASE("categories come as often as their probabilities say, and steps as their shares") {
  const trials::Space space = {{"w", categorical({word("a"), word("never"), word("b")}, {0.25, 0, 0.75})},
                               {"x", bounded(Kind::kUniform, 0, 1)}};
  std::map<std::string, int> counts;
  for (const trials::Params& p : make_sobol(space, 8)->ask(0, 256, {})) ++counts[std::get<std::string>(p[0].second)];
  CHECK(counts == std::map<std::string, int>{{"a", 64}, {"b", 192}});
}

TEST_CASE("a category that cannot come is no part of a pass over a finite space") {
  const trials::Space space = {{"w", categorical({word("a"), word("never"), word("b")}, {0.5, 0, 0.5})},
                               {"n", bounded(Kind::kIntUniform, 1, 3)}};
  const auto draws = make_sobol(space, 8)->ask(0, 60, {});
  for (std::size_t pass = 0; pass < draws.size(); pass += 6) {
    CHECK(std::set<trials::Params>(draws.begin() + static_cast<std::ptrdiff_t>(pass),
                                   draws.begin() + static_cast<std::ptrdiff_t>(pass + 6))
              .size() == 6);
  }
}
