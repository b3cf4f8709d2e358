#include "search/signed_rank.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace hfta::search {
namespace {

constexpr std::size_t kMostExact = 50;

// Twice the ranks of the sizes, from 2 on: whole numbers, ties included.
std::vector<std::size_t> doubled_ranks(const std::vector<double>& differences) {
  std::vector<std::size_t> order(differences.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return std::abs(differences[a]) < std::abs(differences[b]); });
  std::vector<std::size_t> ranks(differences.size());
  for (std::size_t first = 0, end = 0; first < order.size(); first = end) {
    while (end < order.size() && std::abs(differences[order[end]]) == std::abs(differences[order[first]])) ++end;
    for (std::size_t i = first; i < end; ++i) ranks[order[i]] = first + end + 1;  // mean of first + 1 ... end, twice
  }
  return ranks;
}

// The share of all choices of signs whose positive ranks sum up to at least `sum`.
double exact_tail(const std::vector<std::size_t>& ranks, std::size_t sum) {
  const std::size_t all = std::accumulate(ranks.begin(), ranks.end(), std::size_t{0});
  std::vector<double> share(all + 1, 0.0);  // indexed by sum
  share[0] = 1;
  for (const std::size_t rank : ranks) {
    for (std::size_t at = all + 1; at-- > 0;) share[at] = (share[at] + (at >= rank ? share[at - rank] : 0.0)) / 2;
  }
  return std::accumulate(share.begin() + static_cast<std::ptrdiff_t>(sum), share.end(), 0.0);
}

double normal_tail(const std::vector<std::size_t>& ranks, std::size_t sum) {
  double mean = 0, variance = 0;
  for (const std::size_t rank : ranks) {
    mean += static_cast<double>(rank) / 2;
    variance += static_cast<double>(rank) * static_cast<double>(rank) / 4;
  }
  constexpr double kHalfStep = 1;  // sums are doubled: of untied ranks they are 2 apart
  return std::erfc((static_cast<double>(sum) - kHalfStep - mean) / std::sqrt(2 * variance)) / 2;
}

}  // namespace

double signed_rank_p(const std::vector<double>& differences) {
  const std::vector<std::size_t> all = doubled_ranks(differences);
  std::vector<std::size_t> ranks;  // ranks of the differences that are not zero
  std::size_t sum = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (differences[i] == 0) continue;
    ranks.push_back(all[i]);
    if (differences[i] > 0) sum += all[i];
  }
  if (ranks.empty()) return 1;
  return std::min(1.0, ranks.size() <= kMostExact ? exact_tail(ranks, sum) : normal_tail(ranks, sum));
}

}  // namespace hfta::search
