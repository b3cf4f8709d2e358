#include "engine/events/event.hpp"

namespace hfta::engine {

std::optional<BestSoFar> best_complete(const trials::Trial* best) {
  if (best == nullptr) return std::nullopt;
  return BestSoFar{best->number, best->epochs.empty() ? 0 : best->epochs.back().epoch, *best->value,
                   trials::latest_params(*best)};
}

}  // namespace hfta::engine
