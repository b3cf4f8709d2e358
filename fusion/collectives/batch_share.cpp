#include <algorithm>
#include <numeric>

#include "fusion/collectives.hpp"

namespace hfta::fusion {

BatchShare share_of_batch(std::int64_t begin, std::int64_t end, int rank, std::span<const int> parts) {
  const std::int64_t n = end - begin;
  const std::int64_t all = std::max<std::int64_t>(1, std::accumulate(parts.begin(), parts.end(), std::int64_t{0}));
  const std::int64_t before = std::accumulate(parts.begin(), parts.begin() + rank, std::int64_t{0});
  const std::int64_t first = n * before / all;
  const std::int64_t behind = n * (before + parts[static_cast<std::size_t>(rank)]) / all;
  if (first < behind) return {begin + first, begin + behind, first, true};
  return {begin, begin + 1, 0, false};
}

}  // namespace hfta::fusion
