#pragma once
/// How well the slots of a study's arrays were used, worked out from its stored rounds.

#include <optional>
#include <string>
#include <vector>

#include "storage/store.hpp"
#include "trials/trial.hpp"

namespace hfta::engine {

/// Shares from 0 to 1 of the time of all slots, slots x seconds. An array offers as many slots as in its first round,
/// or as it has now if it grew.
struct SlotUse {
  double busy = 0;      ///< Slots that held a trial.
  double empty = 0;     ///< Slots that nothing was ready for.
  double narrowed = 0;  ///< Slots given up: the array was narrower than in its first round.
  double seconds = 0;   ///< Time of rounds, added up over devices.
};

/// The use of slots up to the round in which the last trial was first trained, and after it, when nothing new comes.
struct Occupancy {
  int narrowest = 0, widest = 0;  ///< Widths that arrays had in their first round.
  SlotUse filling;                ///< Up to and including that round.
  std::optional<SlotUse> drain;   ///< After that round; absent if there was no later one.
  double trained_again = 0;       ///< Share of all busy time in epochs that the trial had in an earlier round already.
  double failed = 0;              ///< Share of all busy time in trials that ended as FAIL.
};

/// `rounds` and `places` ascend by round; trials are looked up by number. nullopt if no round has taken any time, or
/// no place is known.
[[nodiscard]] std::optional<Occupancy> occupancy_of(const std::vector<storage::RoundRecord>& rounds,
                                                    const std::vector<storage::OccupancyRecord>& places,
                                                    const std::vector<trials::Trial>& trials);

/// Two lines for people; empty without an occupancy.
[[nodiscard]] std::string occupancy_text(const std::optional<Occupancy>& occupancy);

}  // namespace hfta::engine
