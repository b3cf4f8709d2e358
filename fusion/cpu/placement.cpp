#include "fusion/cpu/placement.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace hfta::fusion::cpu {
namespace {

bool meet(const Lifetime& a, const Lifetime& b) {
  return !a.empty() && !b.empty() && b.begin < a.end && a.begin < b.end;
}

}  // namespace

Placement place(std::span<const Placed> buffers) {
  std::vector<std::size_t> order(buffers.size()), placed;
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return buffers[a].bytes > buffers[b].bytes; });
  Placement all;
  all.offsets.assign(buffers.size(), Placement::kNowhere);
  for (const std::size_t id : order) {
    const Placed& buffer = buffers[id];
    if (buffer.life.empty()) continue;
    std::vector<std::pair<std::size_t, std::size_t>> busy;
    for (const std::size_t other : placed) {
      if (meet(buffer.life, buffers[other].life)) {
        busy.emplace_back(all.offsets[other], all.offsets[other] + buffers[other].bytes);
      }
    }
    std::sort(busy.begin(), busy.end());
    std::size_t at = 0;
    for (const auto& [begin, end] : busy) {
      if (begin >= at + buffer.bytes) break;
      at = std::max(at, end);
    }
    all.offsets[id] = at;
    all.bytes = std::max(all.bytes, at + buffer.bytes);
    placed.push_back(id);
  }
  return all;
}

}  // namespace hfta::fusion::cpu
