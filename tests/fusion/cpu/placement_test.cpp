// Buffers that are in use at the same time share no byte, and places are used again.
#include "fusion/cpu/placement.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "base/random.hpp"

namespace hfta::fusion::cpu {
namespace {

bool uses(const Placed& p, std::size_t kernel) { return kernel >= p.life.begin && kernel < p.life.end; }

}  // namespace

TEST_CASE("buffers in use at the same time share no byte") {
  constexpr std::size_t kKernels = 24;
  CountedRandom random(3, Stream::kDropout, 0);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random.uniform() * static_cast<double>(n)); };
  for (int round = 0; round < 300; ++round) {
    std::vector<Placed> buffers(1 + below(30));
    for (Placed& p : buffers) {
      const std::size_t a = below(kKernels), b = below(kKernels);
      p = {1 + below(1000), {std::min(a, b), std::max(a, b)}};
    }
    const Placement all = place(buffers);
    for (std::size_t k = 0; k < kKernels; ++k) {
      std::vector<int> owner(all.bytes, -1);
      for (std::size_t b = 0; b < buffers.size(); ++b) {
        if (!uses(buffers[b], k)) continue;
        REQUIRE(all.offsets[b] + buffers[b].bytes <= all.bytes);
        bool alone = true;
        for (std::size_t i = all.offsets[b]; i < all.offsets[b] + buffers[b].bytes; ++i) {
          alone = alone && owner[i] == -1;
          owner[i] = static_cast<int>(b);
        }
        REQUIRE(alone);
      }
    }
  }
}

TEST_CASE("a place that is free again is used, and a buffer that is never in use has none") {
  const std::vector<Placed> buffers = {{100, {0, 2}}, {100, {3, 5}}, {50, {}}, {0, {1, 2}}};
  const Placement all = place(buffers);
  CHECK(all.bytes == 100);
  CHECK(all.offsets == std::vector<std::size_t>{0, 0, Placement::kNowhere, 0});
}

}  // namespace hfta::fusion::cpu
