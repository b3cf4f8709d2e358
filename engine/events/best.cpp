#include "engine/events/event.hpp"

namespace hfta::engine {

std::optional<BestSoFar> best_complete(const trials::Trial* best) {
  if (best == nullptr) return std::nullopt;
  return BestSoFar{best->number, best->epochs.empty() ? 0 : best->epochs.back().epoch, *best->value(),
                   trials::latest_params(*best)};
}

std::vector<int> numbers_of(const std::vector<const trials::Trial*>& trials) {
  std::vector<int> numbers;
  for (const trials::Trial* trial : trials) numbers.push_back(trial->number);
  return numbers;
}

}  // namespace hfta::engine
