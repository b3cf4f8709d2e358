#include "engine/driver/goals/best_repetitions.hpp"

#include <algorithm>
#include <cmath>

namespace hfta::engine {

void BestRepetitions::end(int draw, int number, trials::State state, std::optional<double> value) {
  if (!repetitions_.any()) return;
  const int configuration = repetitions_.configuration_of(draw);
  Open& open = open_[configuration];
  const bool complete = state == trials::State::kComplete && value && std::isfinite(*value);
  open.values.push_back(complete ? *value : std::nan(""));
  open.pruned = open.pruned || state == trials::State::kPruned;
  if (complete) keep_better(open.best, {*value, draw, number});
  if (static_cast<int>(open.values.size()) < repetitions_.count()) return;
  close(configuration, open);
  open_.erase(configuration);
}

void BestRepetitions::close(int configuration, const Open& open) {
  if (!open.best) return;
  const double value = open.pruned ? std::nan("") : trials::value_of(open.values, repetitions_.rank, goal_);
  if (std::isfinite(value)) {
    keep_better(best_, {value, configuration, open.best->number});
  } else {
    released_.push_back(open.best->number);
  }
}

bool BestRepetitions::beats(const Best& one, const std::optional<Best>& other) const {
  return !other || trials::better(one.value, other->value, goal_) ||
         (one.value == other->value && one.draw < other->draw);
}

void BestRepetitions::keep_better(std::optional<Best>& place, const Best& one) {
  if (!beats(one, place)) return released_.push_back(one.number);
  if (place) released_.push_back(place->number);
  place = one;
}

bool BestRepetitions::contains(int number) const {
  const auto is_it = [number](const auto& open) { return open.second.best && open.second.best->number == number; };
  return (best_ && best_->number == number) || std::any_of(open_.begin(), open_.end(), is_it);
}

}  // namespace hfta::engine
