// Dropout masks that are filled part by part, from wherever a part begins.
#include "fusion/random/mask_part.hpp"

#include <catch2/catch.hpp>
#include <vector>

#include "fusion/random/draws.hpp"

namespace hfta::fusion::testing {

TEMPLATE_TEST_CASE("a part of a dropout mask is that part of the whole, wherever it begins", "", float, double) {
  constexpr std::size_t kAll = 300;
  constexpr std::uint64_t kKey = 99, kStep = 7;
  constexpr std::uint32_t kNode = 3;
  std::vector<TestType> whole(kAll);
  fill_dropout_mask(whole.data(), kAll, 0.4, kKey, kNode, kStep);
  for (const std::size_t first : {0, 1, 3, 63, 64, 65, 127, 128, 191, 250}) {
    for (const std::size_t n : {0, 1, 2, 15, 63, 64, 65, 50}) {
      if (first + n > kAll) continue;
      std::vector<TestType> part(n + 1, TestType{-1});
      fill_dropout_mask_part(part.data(), first, n, 0.4, kKey, kNode, kStep);
      INFO("from " << first << ", " << n << " elements");
      CHECK(std::equal(part.begin(), part.end() - 1, whole.begin() + static_cast<std::ptrdiff_t>(first)));
      CHECK(part.back() == -1);
    }
  }
}

TEST_CASE("a slot knows what of a value other ranks have before it") {
  const SlotRandom whole{1, 2};
  CHECK(whole.elements_before(120) == 0);
  const SlotRandom part{1, 2, 3, 5};  // samples 5, 6 and 7 of a batch
  CHECK(part.elements_before(3 * 40) == 5 * 40);
  CHECK(part.elements_before(3) == 5);
}

}  // namespace hfta::fusion::testing
