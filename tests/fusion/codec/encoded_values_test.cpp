// Values that lie encoded in slabs.
#include "fusion/codec/encoded_values.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "base/random.hpp"
#include "fusion/codec/codec.hpp"

namespace hfta::fusion {
namespace {

std::vector<float> normals(std::size_t n, std::uint64_t seed) {
  CountedRandom random(seed, Stream::kDropout, 0);
  std::vector<float> x(n);
  for (float& v : x) v = static_cast<float>(random.normal());
  return x;
}

std::size_t whole(const std::vector<float>& x) { return std::max<std::size_t>(x.size(), 1); }

std::vector<float> back(const EncodedValues& values, std::size_t i, std::size_t n, Team* team = nullptr) {
  std::vector<float> x(n, 9);
  values.decode(i, 0, x, team);
  return x;
}

}  // namespace

TEST_CASE("values come back within their bounds, whatever their number and whoever shares the work") {
  const std::vector<std::size_t> sizes = {0, 1, 33, 4095, 4096, 4097, 100000};
  EncodedValues alone, shared;
  Team team(3);
  for (int step = 0; step < 3; ++step) {
    alone.begin(sizes.size());
    shared.begin(sizes.size());
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const std::vector<float> x = normals(sizes[i], 10 * i + static_cast<std::size_t>(step));
      alone.encode(i, x, {whole(x), 0.1F}, nullptr);
      shared.encode(i, x, {whole(x), 0.1F}, &team);
    }
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      CAPTURE(step, sizes[i]);
      const std::vector<float> x = normals(sizes[i], 10 * i + static_cast<std::size_t>(step)),
                               found = back(alone, i, sizes[i]);
      CHECK(found == back(shared, i, sizes[i], &team));
      float worst = 0;
      for (std::size_t k = 0; k < x.size(); ++k) worst = std::max(worst, std::abs(found[k] - x[k]));
      CHECK(worst <= 0.1F * (1 + 0x1p-20F));
    }
  }
}

TEST_CASE("pieces come back one by one, as they do together") {
  Team team(3);
  for (const std::size_t n : {1, 100, 4096, 30000}) {
    for (const std::size_t piece : {1, 7, 32, 4095, 4096, 4097, 8192, 9999, 30000}) {
      CAPTURE(n, piece);
      const std::vector<float> x = normals(n, n + piece);
      EncodedValues values;
      values.begin(1);
      values.encode(0, x, {piece, 0.1F}, &team);
      const std::vector<float> together = back(values, 0, n);
      float worst = 0;
      for (std::size_t k = 0; k < n; ++k) worst = std::max(worst, std::abs(together[k] - x[k]));
      CHECK(worst <= 0.1F * (1 + 0x1p-20F));
      for (const std::size_t pieces : {1, 3}) {
        std::vector<float> found(n, 9);
        for (std::size_t first = 0; first < n; first += pieces * piece) {
          const std::size_t count = std::min(pieces * piece, n - first);
          values.decode(0, first, std::span(found).subspan(first, count), first % 2 == 0 ? &team : nullptr);
        }
        CHECK(found == together);
      }
    }
  }
}

TEST_CASE("with a bound of 0 values come back as they were") {
  const std::vector<float> x = normals(9999, 3);
  EncodedValues values;
  values.begin(1);
  values.encode(0, x, {whole(x), 0}, nullptr);
  CHECK(back(values, 0, x.size()) == x);
}

namespace {

// Bytes of slabs that the values take; slabs are small ones here.
std::int64_t bytes_of(const std::vector<float>& x, float bound) {
  EncodedValues values;
  values.begin(1);
  values.encode(0, x, {whole(x), bound}, nullptr);
  return values.held_bytes();
}

}  // namespace

TEST_CASE("what is 0 comes back as 0 and takes a bit, what is behind a relu a bit less than its size says") {
  constexpr float kBound = 0.01F;
  const std::vector<float> x = normals(std::size_t{1} << 20, 5);
  std::vector<float> relu = x, absolute = x, sparse = x, none(x.size(), 0);
  for (float& v : relu) v = std::max(v, 0.0F);
  for (float& v : absolute) v = std::abs(v);
  for (std::size_t i = 0; i < sparse.size(); ++i) sparse[i] = i % 16 == 3 ? sparse[i] : 0;
  for (const std::vector<float>* const one : {&relu, &absolute, &sparse, &none}) {
    EncodedValues values;
    values.begin(1);
    values.encode(0, *one, {whole(*one), kBound}, nullptr);
    const std::vector<float> found = back(values, 0, one->size());
    float worst = 0;
    bool zeros = true;
    for (std::size_t k = 0; k < found.size(); ++k) {
      worst = std::max(worst, std::abs(found[k] - (*one)[k]));
      zeros = zeros && ((*one)[k] != 0 || found[k] == 0);
    }
    CHECK(worst <= kBound * (1 + 0x1p-20F) + 0x1p-22F);
    CHECK(zeros);
  }
  const auto bits = [&](const std::vector<float>& one) {
    return 8.0 * static_cast<double>(bytes_of(one, kBound)) / static_cast<double>(one.size());
  };
  const double all = bits(x);
  // A slab more or less is a bit of each value.
  CHECK(bits(relu) < 2 + 0.5 * all);
  CHECK(bits(sparse) < 2.5 + all / 16);
  CHECK(bits(none) < 2.5);
}

TEST_CASE("values by their channels are within the bound of what they are by them") {
  constexpr std::size_t kChannels = 5, kRows = 3000;
  constexpr float kBound = 0.02F;
  const std::vector<float> mean = {0, 100, -3, 1e-3F, 7}, deviation = {1, 0.01F, 20, 500, 3};
  std::vector<float> x = normals(kRows * kChannels, 6);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = mean[i % kChannels] + x[i] / deviation[i % kChannels];
  const StandardByChannel by{mean, deviation};
  Team team(3);
  for (const std::size_t piece : {kChannels, 64 * kChannels, x.size()}) {
    EncodedValues values;
    values.begin(1);
    values.encode(0, x, {piece, kBound, &by}, &team);
    std::vector<float> found(x.size());
    for (std::size_t first = 0; first < x.size(); first += piece) {
      const std::size_t count = std::min(piece, x.size() - first);
      values.decode(0, first, std::span(found).subspan(first, count), nullptr, &by);
    }
    float worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      worst = std::max(worst, std::abs(found[i] - x[i]) * deviation[i % kChannels]);
    }
    CAPTURE(piece, worst);
    CHECK(worst < kBound * 1.001F);
    CHECK(worst > kBound * 0.9F);
  }
  EncodedValues exact;
  exact.begin(1);
  exact.encode(0, x, {x.size(), 0, &by}, nullptr);
  std::vector<float> found(x.size());
  exact.decode(0, 0, found, nullptr, &by);
  CHECK(found == x);
}

TEST_CASE("slabs are kept from step to step, and hold little more than what is encoded") {
  const std::vector<float> x = normals(std::size_t{1} << 20, 4);
  std::vector<std::byte> bytes(most_encoded_bytes(x.size()));
  const auto encoded = static_cast<std::int64_t>(encode(x, 0.05F, bytes));
  EncodedValues values;
  std::int64_t held = 0;
  for (int step = 0; step < 4; ++step) {
    values.begin(2);
    for (const std::size_t i : {0, 1}) values.encode(i, x, {whole(x), 0.05F}, nullptr);
    if (step == 0) held = values.held_bytes();
    CHECK(values.held_bytes() == held);
  }
  CHECK(held > 2 * encoded);
  CHECK(static_cast<double>(held) < 1.15 * static_cast<double>(2 * encoded));
}

}  // namespace hfta::fusion
