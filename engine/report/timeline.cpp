#include "engine/report/timeline.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.hpp"

namespace hfta::engine {
namespace {

constexpr double kLongest = 1e10;  // longest round that is believed; the store may hold any number

double believable(double seconds) { return seconds > 0 && seconds <= kLongest ? seconds : 0; }

}  // namespace

std::optional<Timeline> timeline_of(const std::vector<storage::ArrayRecord>& arrays,
                                    const std::vector<storage::RoundRecord>& rounds, double seconds) {
  std::map<int, std::string> device_of;
  for (const storage::ArrayRecord& array : arrays) device_of[array.array] = printable(array.device);
  std::map<std::string, std::size_t> numbers;
  std::map<int, int> first_width;
  Timeline timeline;
  double ended = 0;
  for (const storage::RoundRecord& round : rounds) {
    const auto name = device_of.find(round.array);
    const double took = believable(round.seconds);
    const int width = first_width.emplace(round.array, round.width).first->second;
    if (name == device_of.end() || took == 0 || round.width < 1) continue;
    const auto [number, added] = numbers.emplace(name->second, timeline.devices.size());
    if (added) timeline.devices.push_back({name->second, 0, 0, 0, 0, {}});
    DeviceTime& device = timeline.devices[number->second];
    ended = std::max(ended, (device.rounds.empty() ? 0 : device.rounds.back().end) + took);
    const int offered = std::max(width, round.width), occupied = std::clamp(round.occupied, 0, round.width);
    device.rounds.push_back({round.round, round.array, ended - took, ended, occupied, round.width, offered});
    const double slot = took / offered;
    device.busy += slot * occupied;
    device.empty += slot * (round.width - occupied);
    device.narrowed += slot * (offered - round.width);
  }
  if (timeline.devices.empty()) return std::nullopt;
  timeline.seconds = std::max(ended, believable(seconds));
  for (DeviceTime& device : timeline.devices) {
    device.outside = std::max(0.0, timeline.seconds - device.busy - device.empty - device.narrowed);
  }
  std::sort(timeline.devices.begin(), timeline.devices.end(),
            [](const DeviceTime& a, const DeviceTime& b) { return a.device < b.device; });
  return timeline;
}

std::string timeline_trace(const Timeline& timeline) {
  using nlohmann::ordered_json;
  constexpr double kMicro = 1e6;
  ordered_json events = ordered_json::array();
  for (std::size_t row = 0; row < timeline.devices.size(); ++row) {
    const DeviceTime& device = timeline.devices[row];
    events.push_back(
        {{"name", "thread_name"}, {"ph", "M"}, {"pid", 0}, {"tid", row}, {"args", {{"name", device.device}}}});
    for (const TimedRound& round : device.rounds) {
      events.push_back({{"name", "round " + std::to_string(round.round)},
                        {"ph", "X"},
                        {"pid", 0},
                        {"tid", row},
                        {"ts", round.begin * kMicro},
                        {"dur", (round.end - round.begin) * kMicro},
                        {"args", {{"array", round.array}, {"width", round.width}, {"occupied", round.occupied}}}});
    }
  }
  return ordered_json({{"traceEvents", std::move(events)}}).dump() + "\n";
}

}  // namespace hfta::engine
