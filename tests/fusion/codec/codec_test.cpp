// What comes back is within the bound, and the bytes are those that a slow coder writes, whatever the instruction set:
// instruction_sets.txt runs this program under each.
#include "fusion/codec/codec.hpp"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/error.hpp"
#include "base/random.hpp"
#include "fusion/simd/denormals.hpp"

namespace hfta::fusion {
namespace {

using Bytes = std::vector<std::byte>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kDenormal = std::numeric_limits<float>::denorm_min();
constexpr std::byte kBeyond{0xa5};  // what lies behind memory that may be written, and stays

Bytes encoded(const std::vector<float>& x, float bound) {
  const std::size_t most = most_encoded_bytes(x.size());
  Bytes bytes(most + 8, kBeyond);
  const std::size_t size = encode(x, bound, std::span(bytes).first(most));
  REQUIRE(size <= most);
  for (std::size_t i = most; i < bytes.size(); ++i) REQUIRE(bytes[i] == kBeyond);
  bytes.resize(size);
  bytes.shrink_to_fit();  // a sanitizer sees who reads beyond
  return bytes;
}

std::vector<float> decoded(const Bytes& bytes, std::size_t n) {
  std::vector<float> x(n + 1, 77.0F);
  decode(bytes, std::span(x).first(n));
  REQUIRE(x[n] == 77.0F);
  x.resize(n);
  return x;
}

// One word after the other, bit after bit, in double.
Bytes slowly_encoded(const std::vector<float>& x, float bound) {
  const std::size_t blocks = (x.size() + 31) / 32;
  const float step = 2 * bound;
  Bytes bytes(4 + (blocks + 3) / 4 * 4);
  std::memcpy(bytes.data(), &step, 4);
  const float tolerance = std::nextafter(static_cast<float>(static_cast<double>(bound) * (1 + 0x1p-20)), 0.0F);
  float inverse = 1 / step;
  if (static_cast<double>(inverse) * static_cast<double>(step) > 1) inverse = std::nextafter(inverse, 0.0F);
  for (std::size_t b = 0; b < blocks; ++b) {
    std::uint32_t codes[32] = {}, any = 0;
    float values[32] = {};
    bool exact = false;
    for (std::size_t i = 0; i < 32 && 32 * b + i < x.size(); ++i) {
      values[i] = x[32 * b + i];
      const float scaled = values[i] * inverse;
      if (!(std::abs(scaled) < 0x1p22F)) {
        exact = true;
        continue;
      }
      const auto q = static_cast<std::int32_t>(std::nearbyint(scaled));
      const float back = static_cast<float>(q) * step;
      const double off = std::abs(static_cast<double>(values[i]) - static_cast<double>(back));
      exact = exact || off > static_cast<double>(tolerance);
      codes[i] = q < 0 ? 2 * static_cast<std::uint32_t>(-(q + 1)) + 1 : 2 * static_cast<std::uint32_t>(q);
      any |= codes[i];
    }
    const int bits = exact ? 32 : std::bit_width(any);
    bytes[4 + b] = static_cast<std::byte>(bits);
    for (int bit = 0; bit < bits; ++bit) {
      std::uint32_t word = 0;
      for (std::uint32_t i = 0; i < 32; ++i) word |= (codes[i] >> bit & 1U) << i;
      if (exact) word = std::bit_cast<std::uint32_t>(values[bit]);
      for (int k = 0; k < 4; ++k) bytes.push_back(static_cast<std::byte>(word >> (8 * k)));
    }
  }
  return bytes;
}

void check_within(const std::vector<float>& x, float bound) {
  const std::vector<float> back = decoded(encoded(x, bound), x.size());
  const double most = static_cast<double>(bound) * (1 + 0x1p-20);
  for (std::size_t i = 0; i < x.size(); ++i) {
    CAPTURE(i, x[i], back[i], bound);
    const bool same = std::bit_cast<std::uint32_t>(x[i]) == std::bit_cast<std::uint32_t>(back[i]);
    REQUIRE((same || std::abs(static_cast<double>(x[i]) - static_cast<double>(back[i])) <= most));
  }
}

// Normal numbers, half of them zero if `sparse`, now and then one beyond all others.
std::vector<float> activations(std::size_t n, double scale, bool sparse, std::uint64_t seed) {
  CountedRandom random(seed, Stream::kDropout, n);
  std::vector<float> x(n);
  for (float& v : x) {
    const double normal = std::sqrt(-2 * std::log(1 - random.uniform())) * std::cos(6.283185307 * random.uniform());
    v = sparse && normal < 0 ? 0.0F : static_cast<float>(scale * normal);
  }
  return x;
}

}  // namespace

TEST_CASE("values come back within the bound, and the bytes are those of a slow coder") {
  for (const std::size_t n : {0, 1, 2, 31, 32, 33, 63, 64, 65, 1000, 4096}) {
    for (const float bound : {1e-6F, 3e-4F, 0.01F, 0.125F, 0.7F, 5.0F, 1e20F}) {
      for (const bool sparse : {false, true}) {
        CAPTURE(n, bound, sparse);
        const std::vector<float> x = activations(n, 1, sparse, 3);
        check_within(x, bound);
        REQUIRE(encoded(x, bound) == slowly_encoded(x, bound));
      }
    }
  }
}

TEST_CASE("sizes: a word of each block for each bit") {
  const std::vector<float> zeros(320, 0.0F), ones(320, 1.0F);
  CHECK(encoded(zeros, 0.1F).size() == 4 + 12);
  CHECK(encoded(ones, 0.5F).size() == 4 + 12 + 10 * 2 * 4);  // 1 / 1.0: the whole number 1, whose code is 2
  CHECK(encoded(ones, 1.0F).size() == 4 + 12);
  const std::vector<float> x = activations(32000, 1, false, 1);
  const double bits = static_cast<double>(encoded(x, 0.01F).size()) * 8 / 32000;
  CHECK(bits > 8);  // the largest of 32 normal numbers is near 2.1: 105 steps, and the sign
  CHECK(bits < 9.5);
}

TEST_CASE("what lies within the bound becomes zero, what lies beyond does not") {
  for (const float bound : {1e-7F, 0.001F, 0.03F, 1.0F / 3, 1.7F, 12345.6F}) {
    const float over = bound * (1 + 0x1p-18F);
    const std::vector<float> x = {bound, -bound, std::nextafter(bound, 0.0F), 0.0F, -0.0F, over, -over};
    const std::vector<float> back = decoded(encoded(x, bound), x.size());
    CAPTURE(bound);
    for (std::size_t i = 0; i < 5; ++i) CHECK(std::bit_cast<std::uint32_t>(back[i]) == 0);
    CHECK(back[5] == 2 * bound);
    CHECK(back[6] == -2 * bound);
  }
}

TEST_CASE("every bound has a step of its own, and rounding never carries what lies within it to a step") {
  CountedRandom random(8, Stream::kDropout, 0);
  for (int round = 0; round < 2000; ++round) {
    const auto bound = static_cast<float>(std::ldexp(1 + random.uniform(), round % 90 - 45));
    const std::vector<float> x = {bound, -bound};
    const std::vector<float> back = decoded(encoded(x, bound), x.size());
    CAPTURE(bound);
    REQUIRE(back == std::vector<float>{0, 0});
  }
}

TEST_CASE("values half way between two steps, where rounding may take the wrong one") {
  for (const float bound : {3e-4F, 0.01F, 1.0F / 3}) {
    for (float k = 0.5F; k < 100000; k *= 1.07F) {
      const float middle = (std::floor(k) + 0.5F) * 2 * bound;
      std::vector<float> x;
      for (float v : {std::nextafter(middle, 0.0F), middle, std::nextafter(middle, kInfinity)}) x.push_back(v);
      check_within(x, bound);
      REQUIRE(encoded(x, bound) == slowly_encoded(x, bound));
    }
  }
}

TEST_CASE("what has no bound is kept to the bit, with its block and no other") {
  for (const float odd : {kNan, -kNan, kInfinity, -kInfinity, 3e38F, -1e15F, 0x1p31F}) {
    std::vector<float> x = activations(96, 1, false, 5);
    x[40] = odd;
    const std::vector<float> back = decoded(encoded(x, 0.25F), x.size());
    CAPTURE(odd);
    CHECK(std::memcmp(back.data() + 32, x.data() + 32, 32 * sizeof(float)) == 0);
    CHECK(back[0] != x[0]);
    CHECK(back[95] != x[95]);
    check_within(x, 0.25F);
  }
}

TEST_CASE("a range of more than 2^31 bounds, and every power of two") {
  for (const float bound : {1e-9F, 0.01F, 1e6F}) {
    std::vector<float> x;
    for (int e = -149; e < 128; ++e) {
      for (const float part : {1.0F, 1.3F, -1.9F}) x.push_back(std::ldexp(part, e));
    }
    check_within(x, bound);
    REQUIRE(encoded(x, bound) == slowly_encoded(x, bound));
  }
}

TEST_CASE("constants and denormal numbers") {
  for (const float value : {0.0F, -0.0F, 1.0F, -3.7F, kDenormal, -1e-40F, 1e30F}) {
    for (const std::size_t n : {1, 33, 64}) check_within(std::vector<float>(n, value), 0.01F);
  }
  const std::vector<float> x = {kDenormal, 1e-39F, -1e-40F, 1.0F};
  const Bytes bytes = encoded(x, 0x1p-100F);
  const simd::FlushDenormals flush;
  CHECK(encoded(x, 0x1p-100F) == bytes);
}

TEST_CASE("a bound that is none keeps everything to the bit") {
  std::vector<float> x = activations(70, 1, true, 2);
  x[3] = kNan;
  x[69] = kDenormal;
  for (const float bound : {0.0F, -1.0F, kNan, kInfinity, -kInfinity, 1e-38F, kDenormal, 3e38F}) {
    const std::vector<float> back = decoded(encoded(x, bound), x.size());
    CAPTURE(bound);
    CHECK(std::memcmp(back.data(), x.data(), x.size() * sizeof(float)) == 0);
  }
}

TEST_CASE("any bits as values") {
  CountedRandom random(11, Stream::kDropout, 0);
  for (int round = 0; round < 200; ++round) {
    std::vector<float> x(1 + static_cast<std::size_t>(random.uniform() * 200));
    for (float& v : x) v = std::bit_cast<float>(static_cast<std::uint32_t>(random.uniform() * 0x1p32));
    check_within(x, std::ldexp(1.3F, static_cast<int>(random.uniform() * 120) - 60));
  }
}

TEST_CASE("bytes that no encoder wrote are refused or decoded, and nothing is read outside of them") {
  const std::vector<float> x = activations(100, 1, true, 9);
  const Bytes good = encoded(x, 0.01F);
  std::vector<float> back(x.size());
  for (std::size_t size = 0; size < good.size(); ++size) {
    const Bytes cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
    CHECK_THROWS_AS(decode(cut, back), Error);
  }
  CHECK_THROWS_AS(decode(good, std::span(back).first(64)), Error);
  CountedRandom random(4, Stream::kDropout, 0);
  for (int round = 0; round < 2000; ++round) {
    Bytes bytes = good;
    const auto at = static_cast<std::size_t>(random.uniform() * static_cast<double>(bytes.size()));
    bytes[at] = static_cast<std::byte>(random.uniform() * 256);
    try {
      decode(bytes, back);
    } catch (const Error&) {
    }
  }
  Bytes padded = encoded({1.0F}, 0.01F);
  padded[7] = std::byte{1};  // of the zeros behind the one width
  CHECK_THROWS_AS(decode(padded, std::span(back).first(1)), Error);
  Bytes small(most_encoded_bytes(x.size()) - 1);
  CHECK_THROWS_AS(encode(x, 0.01F, small), Error);
}

}  // namespace hfta::fusion
