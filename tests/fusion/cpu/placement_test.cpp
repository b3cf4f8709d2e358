// Buffers that are in use at the same time share no byte, and places are used again.
#include "fusion/cpu/placement.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "base/random.hpp"

namespace hfta::fusion::cpu {
namespace {

bool uses(const Placed& p, std::size_t kernel) { return kernel >= p.life.begin && kernel < p.life.end; }

bool meet(const Lifetime& a, const Lifetime& b) { return b.begin < a.end && a.begin < b.end; }

// As place() says it, with every buffer that has a place looked at for each.
Placement slowly_placed(const std::vector<Placed>& buffers) {
  std::vector<std::size_t> order(buffers.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return buffers[a].bytes > buffers[b].bytes; });
  Placement all;
  all.offsets.assign(buffers.size(), Placement::kNowhere);
  for (const std::size_t id : order) {
    if (buffers[id].life.empty()) continue;
    std::size_t at = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t other = 0; other < buffers.size(); ++other) {
        const std::size_t begin = all.offsets[other], end = begin + buffers[other].bytes;
        const bool placed = begin != Placement::kNowhere && meet(buffers[id].life, buffers[other].life);
        if (!placed || begin >= at + buffers[id].bytes || end <= at) continue;
        at = end;
        moved = true;
      }
    }
    all.offsets[id] = at;
    all.bytes = std::max(all.bytes, at + buffers[id].bytes);
  }
  return all;
}

}  // namespace

TEST_CASE("short and long lives among many kernels have the places that a look at all of them gives") {
  CountedRandom random(4, Stream::kDropout, 0);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random.uniform() * static_cast<double>(n)); };
  for (int round = 0; round < 20; ++round) {
    const std::size_t kernels = 1 + below(3000);
    std::vector<Placed> buffers(300);
    for (Placed& p : buffers) {
      const std::size_t begin = below(kernels), most = below(3) == 0 ? kernels : 1 + below(60);
      p = {1 + below(1000), {begin, std::min(kernels, begin + below(most + 1))}};
    }
    const Placement found = place(buffers), wanted = slowly_placed(buffers);
    CHECK(found.offsets == wanted.offsets);
    CHECK(found.bytes == wanted.bytes);
  }
}

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
