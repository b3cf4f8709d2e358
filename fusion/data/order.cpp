#include <numeric>

#include "base/random.hpp"
#include "base/shuffle.hpp"
#include "fusion/dataset.hpp"

namespace hfta::fusion {

std::vector<std::int64_t> epoch_order(std::int64_t n, const OrderOptions& options, std::uint64_t seed,
                                      std::uint64_t trial_seed, int epoch) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  if (!options.shuffle) return order;
  const auto item = static_cast<std::uint64_t>(options.once ? 0 : epoch);
  // Shared orders use sub 0, so trials count from 1.
  CountedRandom random(seed, Stream::kOrder, item, options.per_trial ? trial_seed + 1 : 0);
  shuffle(order, random);
  return order;
}

}  // namespace hfta::fusion
