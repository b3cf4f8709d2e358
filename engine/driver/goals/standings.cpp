#include "engine/driver/goals/standings.hpp"

#include "trials/repetition.hpp"

namespace hfta::engine {
namespace {

std::vector<const trials::Trial*> in_order_of_draws(const std::vector<trials::Trial>& trials) {
  std::vector<const trials::Trial*> drawn;
  drawn.reserve(trials.size());
  for (const trials::Trial& trial : trials) drawn.push_back(&trial);
  return drawn;
}

}  // namespace

// Ascending order is best first, ties to the lower draw.
std::pair<double, int> Standings::place(int draw, double value) const {
  return {config_.objectives.front().goal == trials::Goal::kMinimize ? value : -value, draw};
}

void Standings::rank(int draw, double value) {
  remove(draw);
  values_.emplace(draw, value);
  ranking_.insert(place(draw, value));
}

void Standings::remove(int draw) {
  const auto ranked = values_.find(draw);
  if (ranked == values_.end()) return;
  ranking_.erase(place(draw, ranked->second));
  values_.erase(ranked);
}

void Standings::end(int draw, const trials::Trial& trial) {
  if (config_.has_several_objectives()) {
    if (std::optional<trials::Point> point = trials::point_of(trial, config_.objectives)) {
      (void)front_.add(trial.number, std::move(*point));
    }
  }
  if (trial.state != trials::State::kComplete) remove(draw);
}

std::optional<int> Standings::leader() const {
  if (ranking_.empty() || config_.has_several_objectives()) return std::nullopt;
  return ranking_.begin()->second;
}

std::optional<std::vector<int>> Standings::front() const {
  return config_.has_several_objectives() ? std::optional(front_.numbers()) : std::nullopt;
}

std::vector<const trials::Trial*> Standings::best_trials(const std::vector<trials::Trial>& trials) const {
  const bool several = config_.has_several_objectives();
  if (!several && !config_.repetitions.any()) return trials::best_of(trials, config_.objectives);
  std::vector<const trials::Trial*> drawn = in_order_of_draws(trials);
  if (several) {
    std::erase_if(drawn, [&](const trials::Trial* trial) { return !front_.contains(trial->number); });
    return drawn;
  }
  const trials::Trial* best = trials::best_of(drawn, config_.repetitions, config_.objectives.front().goal);
  return best == nullptr ? std::vector<const trials::Trial*>{} : std::vector{best};
}

std::optional<double> Standings::best_value(const std::vector<trials::Trial>& trials) const {
  if (!config_.target) return std::nullopt;  // what follows walks all trials
  if (config_.repetitions.any()) {
    return trials::best_value(in_order_of_draws(trials), config_.repetitions, config_.objectives.front().goal);
  }
  const std::vector<const trials::Trial*> best = best_trials(trials);
  return best.empty() ? std::nullopt : best.front()->value();
}

}  // namespace hfta::engine
