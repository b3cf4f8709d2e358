#include "search/freeze_thaw/dealer.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "search/sampler/gp/normal.hpp"

namespace hfta::search::freeze_thaw {

int stage_of(int epochs, int eta) {
  int stage = 0;
  for (std::int64_t end = 1; epochs >= end; end *= eta) ++stage;
  return stage;
}

Dealer::Dealer(Candidates candidates, CurveForecast forecast, Vector feasible, const FreezeThawOptions& options,
               const CountedRandom& random)
    : from_(std::move(candidates)),
      forecast_(std::move(forecast)),
      feasible_(std::move(feasible)),
      options_(options),
      random_(random),
      gone_(from_.size(), false) {}

std::vector<Pick> Dealer::deal(std::uint64_t number, const Request& request) {
  for (int slot = 0; slot < request.slots || made_new_ < request.least_new; ++slot) {
    const Choice chosen = of_slot(number + static_cast<std::uint64_t>(slot), made_new_ < request.room);
    if (!chosen) break;
    take(*chosen);
  }
  return std::move(picks_);
}

Dealer::Choice Dealer::of_slot(std::uint64_t number, bool new_ones) {
  if (number % 2 == 1) {
    const std::uint64_t stages = 1 + static_cast<std::uint64_t>(stage_of(options_.max_epochs - 1, options_.eta));
    if (const Choice chosen = of_stage(static_cast<int>(number / 2 % stages), new_ones)) return chosen;
  }
  return most_per_epoch(new_ones);
}

Dealer::Choice Dealer::of_stage(int stage, bool new_ones) {
  if (stage == 0) return new_ones ? new_one() : std::nullopt;
  return best_of(0, from_.waiting, [&](std::size_t i) -> std::optional<double> {
    if (stage_of(from_.epochs[i], options_.eta) != stage) return std::nullopt;
    return stage == 1 ? promise(i) : -from_.best[i];
  });
}

Dealer::Choice Dealer::most_per_epoch(bool new_ones) {
  const Choice chosen =
      best_of(0, new_ones ? from_.size() : from_.waiting, [&](std::size_t i) -> std::optional<double> {
        return promise(i) - std::log(std::max(1, options_.max_epochs - from_.epochs[i]));
      });
  return chosen && from_.is_new(*chosen) ? new_one() : chosen;
}

Dealer::Choice Dealer::new_one() {
  const std::size_t first = from_.waiting;
  if (random_.below(100) < static_cast<std::uint64_t>(options_.random_percent)) {
    for (std::size_t i = first; i < first + from_.sequence; ++i) {
      if (!gone_[i]) return i;
    }
  }
  return best_of(first, from_.size(), [&](std::size_t i) -> std::optional<double> { return promise(i); });
}

template <typename Worth>
Dealer::Choice Dealer::best_of(std::size_t first, std::size_t last, Worth worth) const {
  Choice found;
  double highest = 0;
  for (std::size_t i = first; i < last; ++i) {
    if (gone_[i]) continue;
    const std::optional<double> value = worth(i);
    if (!value || (found && !(*value > highest))) continue;
    found = i;
    highest = *value;
  }
  return found;
}

// The logarithm of the expected improvement.
double Dealer::promise(std::size_t i) const {
  constexpr double kLeast = 1e-9;  // as a share of the values' variance 1: what rounding leaves of a variance of 0
  const auto k = static_cast<Eigen::Index>(i);
  const double deviation = std::sqrt(std::max(forecast_.variances()[k], kLeast));
  return gp::log_improvement((forecast_.least_known() - forecast_.means()[k]) / deviation) + std::log(deviation) +
         feasible_[k];
}

void Dealer::take(std::size_t i) {
  gone_[i] = true;
  picks_.push_back(from_.picks[i]);
  if (!from_.is_new(i)) return;
  ++made_new_;
  forecast_.believe(static_cast<Eigen::Index>(i));
}

}  // namespace hfta::search::freeze_thaw
