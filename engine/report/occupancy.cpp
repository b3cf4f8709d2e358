#include "engine/report/occupancy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "engine/report/words.hpp"

namespace hfta::engine {
namespace {

using storage::OccupancyRecord;
using storage::RoundRecord;
using trials::Trial;

// A trial as far as rounds were read. Its epochs follow one another, so the highest one tells which it has had.
struct Seen {
  bool failed = false;
  int epoch = 0;
};

// The round's time as measured; a clock that failed counts as 0.
double seconds_of(const RoundRecord& round) { return round.seconds > 0 ? round.seconds : 0; }

class Sums {
 public:
  void add(const RoundRecord& round, int first_width) {
    const double seconds = seconds_of(round);
    const double width = round.width;  // the store may hold any int: differences are taken where they cannot overflow
    use_.busy += seconds * round.occupied;
    use_.empty += seconds * (width - round.occupied);
    use_.narrowed += seconds * std::max(0.0, first_width - width);
    if (round.round != round_) {
      use_.seconds += longest_;
      longest_ = 0;
    }
    longest_ = std::max(longest_, seconds);
    round_ = round.round;
  }
  [[nodiscard]] std::optional<SlotUse> shares() const {
    SlotUse use = use_;
    use.seconds += longest_;
    const double whole = use.busy + use.empty + use.narrowed;
    if (!(whole > 0)) return std::nullopt;
    for (double* part : {&use.busy, &use.empty, &use.narrowed}) *part /= whole;
    return use;
  }
  [[nodiscard]] double busy() const { return use_.busy; }

 private:
  SlotUse use_;
  int round_ = -1;
  double longest_ = 0;  // longest time of the arrays of round_
};

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

}  // namespace

std::optional<Occupancy> occupancy_of(const std::vector<RoundRecord>& rounds,
                                      const std::vector<OccupancyRecord>& places, const std::vector<Trial>& trials) {
  if (rounds.empty() || places.empty()) return std::nullopt;
  std::unordered_map<int, Seen> seen;
  seen.reserve(trials.size());
  for (const Trial& trial : trials) seen[trial.number].failed = trial.state == trials::State::kFail;
  Occupancy found;
  int last_start = rounds.front().round;
  auto round = rounds.begin();
  const auto before = [](const RoundRecord& r, const OccupancyRecord& p) {
    return std::pair(r.round, r.array) < std::pair(p.round, p.array);
  };
  for (const OccupancyRecord& place : places) {
    while (round != rounds.end() && before(*round, place)) ++round;
    if (round == rounds.end()) break;
    if (round->round != place.round || round->array != place.array) continue;
    Seen& trial = seen[place.trial];
    if (place.epoch == 1 && trial.epoch == 0) last_start = place.round;
    if (place.epoch <= trial.epoch) found.trained_again += seconds_of(*round);
    if (trial.failed) found.failed += seconds_of(*round);
    trial.epoch = std::max(trial.epoch, place.epoch);
  }
  std::map<int, int> first_width;
  Sums filling, drain;
  for (const RoundRecord& r : rounds) {
    const int width = first_width.emplace(r.array, r.width).first->second;
    (r.round <= last_start ? filling : drain).add(r, width);
  }
  const std::optional<SlotUse> use = filling.shares();
  const double busy = filling.busy() + drain.busy();
  if (!use || !(busy > 0)) return std::nullopt;
  found.filling = *use;
  found.drain = drain.shares();
  found.trained_again /= busy;
  found.failed /= busy;
  const auto [low, high] = std::minmax_element(first_width.begin(), first_width.end(),
                                               [](const auto& a, const auto& b) { return a.second < b.second; });
  found.narrowest = low->second;
  found.widest = high->second;
  return found;
}

std::string occupancy_text(const std::optional<Occupancy>& occupancy) {
  if (!occupancy) return "";
  const Occupancy& o = *occupancy;
  const std::string widths =
      o.narrowest == o.widest ? std::to_string(o.widest) : fmt::format("{} to {}", o.narrowest, o.widest);
  std::string text =
      fmt::format("slots: {} busy until the last trial began (arrays {} wide); lost: {} empty, {} narrowed\n",
                  percent(o.filling.busy), widths, percent(o.filling.empty), percent(o.filling.narrowed));
  text += "  ";
  if (o.drain) text += fmt::format("then {} busy for {}; ", percent(o.drain->busy), duration_text(o.drain->seconds));
  return text + fmt::format("{} of the training trained again, {} in trials that failed\n", percent(o.trained_again),
                            percent(o.failed));
}

}  // namespace hfta::engine
