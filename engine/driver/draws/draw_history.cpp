#include "engine/driver/draws/draw_history.hpp"

#include <limits>

namespace hfta::engine {

void DrawHistory::report(int draw, bool diverged, const std::vector<double>& values) {
  search::SeenTrial& trial = trials_.at(static_cast<std::size_t>(draw));
  trial.curve.push_back(diverged ? std::numeric_limits<double>::quiet_NaN() : values.at(0));
  trial.values = values;
}

void DrawHistory::end(int draw, trials::State state, std::optional<int> round) {
  if (round) {
    ends_.push_back({draw, *round, state});
  } else {
    trials_.at(static_cast<std::size_t>(draw)).ended = state;
  }
}

// A trial that ends between two rounds, since memory did not suffice, does so while others are drawn: it counts as
// ended in the round to come, so that no draw depends on which of the two was first.
const search::History& DrawHistory::after(int rounds) {
  std::erase_if(ends_, [&](const End& end) {
    if (end.round >= rounds) return false;
    trials_.at(static_cast<std::size_t>(end.draw)).ended = end.state;
    return true;
  });
  return trials_;
}

}  // namespace hfta::engine
