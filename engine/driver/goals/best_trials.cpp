#include "engine/driver/goals/best_trials.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace hfta::engine {

BestTrials::BestTrials(int keep, trials::Objectives objectives)
    : most_(static_cast<std::size_t>(std::max(keep, 1))), objectives_(std::move(objectives)) {}

// A trial that has left the front never comes back to it, so the order in which trials are added does not matter.
std::vector<int> BestTrials::add(int number, const std::vector<double>& values) {
  if (objectives_.size() == 1) return add_to_best(number, values.front());
  const std::optional<trials::Point> point = trials::point_of(values, objectives_);
  return point ? front_.add(number, *point) : std::vector{number};
}

std::vector<int> BestTrials::add_to_best(int number, double value) {
  const auto worse = std::find_if(best_.begin(), best_.end(), [&](const Kept& kept) {
    return trials::better(value, kept.value, objectives_.front().goal) || (value == kept.value && number < kept.number);
  });
  best_.insert(worse, {value, number});
  if (best_.size() <= most_) return {};
  const int surpassed = best_.back().number;
  best_.pop_back();
  return {surpassed};
}

bool BestTrials::contains(int number) const {
  if (front_.contains(number)) return true;
  return std::any_of(best_.begin(), best_.end(), [&](const Kept& kept) { return kept.number == number; });
}

std::vector<int> BestTrials::numbers() const {
  std::vector<int> all = front_.numbers();
  for (const Kept& kept : best_) all.push_back(kept.number);
  return all;
}

}  // namespace hfta::engine
