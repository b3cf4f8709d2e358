#include "engine/driver/left_arrays.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace hfta::engine {

std::vector<LeftArray> arrays_left(storage::Store& store, const std::string& study, const Ledger& ledger) {
  std::map<int, int> draw_of;  // by number
  for (int draw = 0; draw < ledger.drawn(); ++draw) {
    draw_of[ledger.trials().at(static_cast<std::size_t>(draw)).number] = draw;
  }
  int last = -1;
  const std::vector<storage::RoundRecord> rounds = store.rounds(study);
  for (const storage::RoundRecord& round : rounds) last = std::max(last, round.round);
  std::map<int, LeftArray> by_id;
  for (const storage::RoundRecord& round : rounds) {
    if (round.round == last) by_id[round.array] = {round.array, {}, round.width, {}};
  }
  for (const storage::OccupancyRecord& place : store.occupancy(study)) {
    const auto draw = draw_of.find(place.trial);
    if (place.round == last && draw != draw_of.end()) by_id[place.array].trials.emplace_back(place.slot, draw->second);
  }
  // cuda:2 before cuda:10
  std::map<std::tuple<std::size_t, std::string, int>, LeftArray> by_device;
  for (const storage::ArrayRecord& array : store.arrays(study)) {
    const auto found = by_id.find(array.array);
    if (found == by_id.end()) continue;
    found->second.partition = array.partition;
    by_device[{array.device.size(), array.device, array.array}] = found->second;
  }
  std::vector<LeftArray> left;
  for (auto& [key, array] : by_device) left.push_back(std::move(array));
  return left;
}

}  // namespace hfta::engine
