#include "engine/driver/trials/held_states.hpp"

namespace hfta::engine {

void HeldStates::hold(int draw, std::size_t bytes, bool unsaved) {
  let_go(draw);
  by_draw_.emplace(draw, bytes);
  bytes_ += bytes;
  if (unsaved) unsaved_.insert(draw);
}

void HeldStates::let_go(int draw) {
  const auto held = by_draw_.find(draw);
  if (held == by_draw_.end()) return;
  bytes_ -= held->second;
  by_draw_.erase(held);
  unsaved_.erase(draw);
}

}  // namespace hfta::engine
