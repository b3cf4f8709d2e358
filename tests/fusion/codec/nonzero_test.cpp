// Values that are not 0, taken out and put back.
#include "fusion/codec/nonzero.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "base/random.hpp"

namespace hfta::fusion {

TEST_CASE("what is not 0 is taken out in order, and put back where it was") {
  CountedRandom random(1, Stream::kDropout, 0);
  for (const std::size_t n : {0, 1, 31, 32, 33, 1000}) {
    for (const double share : {0.0, 0.1, 0.5, 1.0}) {
      CAPTURE(n, share);
      std::vector<float> x(n), wanted, kept(n), back(n, 9);
      for (float& v : x) {
        v = random.uniform() < share ? static_cast<float>(random.normal()) : 0.0F;
        if (v != 0) wanted.push_back(v);
      }
      std::vector<std::uint32_t> mask(mask_words(n));
      const std::size_t count = take_nonzero(x, mask.data(), kept.data());
      REQUIRE(count == wanted.size());
      CHECK(std::equal(wanted.begin(), wanted.end(), kept.begin()));
      bool bits = true;
      for (std::size_t i = 0; i < n; ++i) bits = bits && (mask[i / 32] >> i % 32 & 1) == (x[i] != 0 ? 1 : 0);
      CHECK(bits);
      put_nonzero(mask.data(), kept.data(), back);
      CHECK(back == x);
    }
  }
}

TEST_CASE("NaN and infinity are not 0, a negative 0 is") {
  const std::vector<float> x = {std::numeric_limits<float>::quiet_NaN(), -0.0F, -std::numeric_limits<float>::infinity(),
                                std::numeric_limits<float>::denorm_min()};
  std::uint32_t mask = 0;
  std::vector<float> kept(x.size()), back(x.size());
  CHECK(take_nonzero(x, &mask, kept.data()) == 3);
  CHECK(mask == 0b1101);
  put_nonzero(&mask, kept.data(), back);
  CHECK(std::isnan(back[0]));
  CHECK(back[1] == 0);
  CHECK_FALSE(std::signbit(back[1]));
  CHECK(back[2] == x[2]);
  CHECK(back[3] == x[3]);
}

}  // namespace hfta::fusion
