#include "base/random.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <set>
#include <vector>

using hfta::CountedRandom;
using hfta::Stream;

TEST_CASE("Philox4x32-10 gives Random123's known answers") {
  struct Case {
    std::array<std::uint32_t, 4> counter;
    std::array<std::uint32_t, 2> key;
    std::array<std::uint32_t, 4> wanted;
  };
  const std::vector<Case> cases = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       {0xffffffff, 0xffffffff},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (const Case& c : cases) CHECK(hfta::philox(c.counter, c.key) == c.wanted);
}

TEST_CASE("A sequence is a function of seed, stream, item and sub-item") {
  const auto first = [](std::uint64_t seed, Stream stream, std::uint64_t item, std::uint64_t sub) {
    return CountedRandom(seed, stream, item, sub).next_u64();
  };
  const std::uint64_t base = first(1, Stream::kSample, 2, 3);
  CHECK(first(1, Stream::kSample, 2, 3) == base);

  // Every coordinate matters, also in small numbers and where two of them trade places.
  std::set<std::uint64_t> seen;
  std::size_t drawn = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    for (const Stream stream : {Stream::kSample, Stream::kInit, Stream::kDropout, Stream::kOrder, Stream::kSplit}) {
      for (std::uint64_t item = 0; item < 8; ++item) {
        for (std::uint64_t sub = 0; sub < 8; ++sub, ++drawn) seen.insert(first(seed, stream, item, sub));
      }
    }
  }
  CHECK(seen.size() == drawn);
}

TEST_CASE("A copy rewinds, and blocks follow one another") {
  CountedRandom random(7, Stream::kInit, 1);
  for (int i = 0; i < 3; ++i) (void)random.next_u32();
  CountedRandom copy = random;
  std::set<std::uint32_t> distinct;
  for (int i = 0; i < 64; ++i) {
    const std::uint32_t value = random.next_u32();
    CHECK(copy.next_u32() == value);
    distinct.insert(value);
  }
  CHECK(distinct.size() == 64);
}

TEST_CASE("uniform fills [0, 1) evenly") {
  CountedRandom random(11, Stream::kSample, 0);
  constexpr int kDraws = 100'000, kBins = 20;
  std::vector<int> bins(kBins);
  double sum = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double u = random.uniform();
    REQUIRE(u >= 0);
    REQUIRE(u < 1);
    sum += u;
    ++bins[static_cast<std::size_t>(u * kBins)];
  }
  CHECK(sum / kDraws == Approx(0.5).margin(0.004));
  double chi2 = 0;
  for (const int n : bins) chi2 += std::pow(n - kDraws / kBins, 2) / (kDraws / kBins);
  CHECK(chi2 < 43.8);  // 0.999 quantile at 19 degrees of freedom
}

TEST_CASE("normal has the moments of a standard normal") {
  CountedRandom random(12, Stream::kInit, 0);
  constexpr int kDraws = 100'000;
  double m1 = 0, m2 = 0, m3 = 0, m4 = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double z = random.normal();
    REQUIRE(std::isfinite(z));
    m1 += z / kDraws;
    m2 += z * z / kDraws;
    m3 += z * z * z / kDraws;
    m4 += z * z * z * z / kDraws;
  }
  CHECK(m1 == Approx(0).margin(0.015));
  CHECK(m2 == Approx(1).margin(0.02));
  CHECK(m3 == Approx(0).margin(0.04));
  CHECK(m4 == Approx(3).margin(0.12));
}

TEST_CASE("below is even over its range, whatever the bound") {
  for (const std::uint64_t bound : {1u, 2u, 3u, 7u, 10u}) {
    CountedRandom random(13, Stream::kOrder, bound);
    constexpr int kDraws = 70'000;
    std::vector<int> counts(bound);
    for (int i = 0; i < kDraws; ++i) {
      const std::uint64_t value = random.below(bound);
      REQUIRE(value < bound);
      ++counts[value];
    }
    const double wanted = kDraws / static_cast<double>(bound);
    for (const int n : counts) CHECK(std::abs(n - wanted) < 4.5 * std::sqrt(wanted));
  }
}

TEST_CASE("below has no modulo bias where it would be greatest") {
  // Two thirds of 2^64: a plain remainder would give the lower half twice as often as the upper one.
  const std::uint64_t bound = 0xAAAAAAAAAAAAAAAB;
  CountedRandom random(14, Stream::kOrder, 0);
  int lower = 0;
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t value = random.below(bound);
    REQUIRE(value < bound);
    lower += value < bound / 2 ? 1 : 0;
  }
  CHECK(lower == Approx(5000).margin(225));
}
