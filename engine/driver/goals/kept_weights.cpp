#include "engine/driver/goals/kept_weights.hpp"

#include <optional>

namespace hfta::engine {

KeptWeights::KeptWeights(const StudyConfig& config)
    : best_(config.keep, config.objectives), repetitions_(config.repetitions, config.objectives.front().goal) {}

std::vector<int> KeptWeights::end(int draw, int number, trials::State state, const std::vector<double>& values) {
  const bool has_values = state == trials::State::kComplete && !values.empty();
  std::vector<int> released;
  if (has_values) released = best_.add(number, values);
  repetitions_.end(draw, number, state, has_values ? std::optional(values.front()) : std::nullopt);
  for (const int other : repetitions_.take_released()) released.push_back(other);
  std::erase_if(released, [&](int other) { return contains(other); });
  return released;
}

}  // namespace hfta::engine
