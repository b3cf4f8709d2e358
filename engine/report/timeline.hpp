#pragma once
/// How the time of a study was spent, device by device, as far as its stored rounds say.

#include <optional>
#include <string>
#include <vector>

#include "storage/store.hpp"

namespace hfta::engine {

/// A round of a device's array: `offered` slots is what the array had in its first round, or has now if that is more.
struct TimedRound {
  int round = 0, array = 0;
  double begin = 0, end = 0;  ///< Seconds since the study began, without the time between its runs.
  int occupied = 0, width = 0, offered = 0;
};

/// Seconds of a device; their sum is Timeline::seconds.
struct DeviceTime {
  std::string device;
  double busy = 0;      ///< Time in rounds, for slots that held a trial. Waiting for input counts, too.
  double empty = 0;     ///< Time in rounds, for slots that were empty.
  double narrowed = 0;  ///< Time in rounds, for slots that the array had given up.
  double outside = 0;   ///< Time in no round: to open arrays, measure ways to run, wait for devices, save states.
  std::vector<TimedRound> rounds;
};

struct Timeline {
  double seconds = 0;  ///< Seconds of all of the study's runs.
  std::vector<DeviceTime> devices;
};

/// The store has how long each round took and in which order rounds ended, and not when. A round is put where it can
/// have ended at the earliest: not before those that ended before it, and its own seconds after the device's last one.
/// `rounds` ascend; `seconds`: of all runs. nullopt if no round has taken any time.
[[nodiscard]] std::optional<Timeline> timeline_of(const std::vector<storage::ArrayRecord>& arrays,
                                                  const std::vector<storage::RoundRecord>& rounds, double seconds);

/// A picture, SVG: a row per device (the first 64), time from left to right, in each column what of the device's slots
/// was busy, empty and given up. Its size does not grow with the number of rounds.
[[nodiscard]] std::string timeline_svg(const Timeline& timeline, const std::string& study);

/// The timeline as a Chrome trace (chrome://tracing, Perfetto): an event per round.
[[nodiscard]] std::string timeline_trace(const Timeline& timeline);

}  // namespace hfta::engine
