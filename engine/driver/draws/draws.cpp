#include "engine/driver/draws/draws.hpp"

#include <algorithm>

#include "engine/driver/goals/budget.hpp"
#include "search/repetition.hpp"

namespace hfta::engine {

Draws::Draws(const StudyConfig& config, search::Sampler& sampler)
    : config_(config), sampler_(sampler), wait_for_slots_(sampler.learns() || ends_early(config)) {}

std::vector<trials::Params> Draws::ask(int first, int k, int rounds, const trials::Params* like) {
  std::vector<trials::Params> drawn = sampled(first, k, rounds, like);
  exhausted_ = static_cast<int>(drawn.size()) < k;
  return drawn;
}

std::vector<trials::Params> Draws::sampled(int first, int k, int rounds, const trials::Params* like) {
  if (!follow_results()) return sampler_.ask(first, k, {});  // the sampler needs no history
  const trials::Repetitions& repetitions = config_.repetitions;
  const search::History& trials = history_.after(rounds);
  search::History configurations;
  if (repetitions.any()) {
    configurations = search::by_configuration(trials, repetitions, config_.objectives.front().goal);
  }
  const search::History& seen = repetitions.any() ? configurations : trials;
  if (like != nullptr) {
    const trials::Params given = config_.splitting(repetitions.configuration_of(*like));
    std::vector<trials::Params> asked = sampler_.ask(first, k, seen, given);
    const bool found = std::all_of(asked.begin(), asked.end(),
                                   [&](const trials::Params& one) { return config_.splitting(one) == given; });
    if (found) return asked;
  }
  return sampler_.ask(first, k, seen);
}

void Draws::add(const trials::Params& params) {
  if (wait_for_slots_) history_.add(params);
}

void Draws::take_back() {
  if (wait_for_slots_) history_.pop();
}

void Draws::report(int draw, bool diverged, const std::vector<double>& values) {
  if (wait_for_slots_) history_.report(draw, diverged, values);
}

void Draws::end(int draw, trials::State state, std::optional<int> round) {
  if (wait_for_slots_) history_.end(draw, state, round);
}

}  // namespace hfta::engine
