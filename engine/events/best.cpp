#include "engine/events/event.hpp"

namespace hfta::engine {

std::optional<BestSoFar> best_complete(const std::vector<trials::Trial>& trials, trials::Goal goal) {
  const trials::Trial* best = trials::best_of(trials, goal);
  if (best == nullptr) return std::nullopt;
  return BestSoFar{best->number, best->epochs.empty() ? 0 : best->epochs.back().epoch, *best->value,
                   trials::latest_params(*best)};
}

}  // namespace hfta::engine
