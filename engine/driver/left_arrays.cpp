#include "engine/driver/left_arrays.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace hfta::engine {

std::vector<LeftArray> arrays_left(storage::Store& store, const std::string& study, const TrialTable& ledger) {
  std::map<int, int> draw_of;  // by number
  for (int draw = 0; draw < ledger.drawn(); ++draw) {
    draw_of[ledger.trials().at(static_cast<std::size_t>(draw)).number] = draw;
  }
  std::map<int, LeftArray> by_id;
  std::map<int, int> last_round;  // by array
  for (const storage::RoundRecord& round : store.rounds(study)) {
    last_round[round.array] = round.round;
    by_id[round.array] = {round.array, {}, round.width, {}};
  }
  std::map<int, storage::OccupancyRecord> latest;  // by draw; places come in order of round
  for (const storage::OccupancyRecord& place : store.occupancy(study)) {
    const auto draw = draw_of.find(place.trial);
    if (draw != draw_of.end()) latest[draw->second] = place;
  }
  for (const auto& [draw, place] : latest) {
    const bool here = place.round == last_round[place.array] && place.epoch == ledger.recorded(draw);
    if (here) by_id[place.array].trials.emplace_back(place.slot, draw);
  }
  // cuda:2 before cuda:10
  std::map<std::pair<std::size_t, std::string>, LeftArray> by_device;
  for (const storage::ArrayRecord& array : store.arrays(study)) {
    const auto found = by_id.find(array.array);
    if (found == by_id.end()) continue;
    found->second.partition = array.partition;
    LeftArray& newest = by_device[{array.device.size(), array.device}];
    if (newest.width == 0 || last_round[newest.id] < last_round[array.array]) newest = found->second;
  }
  std::vector<LeftArray> left;
  left.reserve(by_device.size());
  for (auto& [device, array] : by_device) left.push_back(std::move(array));
  return left;
}

}  // namespace hfta::engine
